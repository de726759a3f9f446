import CacheTestSupport
import Testing

@testable import CacheEngine

/// A removal with `.onRemoval` confirms what an earlier life wrote without that durability.
@Suite struct EarlierRemovalTests {
    /// The state in which a life leaves the segment with a removal.
    enum End { case closed, killed, sealed }

    /// A tier of durability `.none`, whose entry 1 an earlier life has left on the device.
    private static func unsynchronised(
        _ files: FaultyFileSystem
    ) async throws -> (DiskStore, DiskTier) {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.durability = .onSegmentSeal
        store.configuration.flushMilliseconds = 1_000_000
        let first = try await store.open()
        _ = first.enqueue(try store.entry(1))
        await store.close()
        store.configuration.durability = .none
        return (store, try await store.open())
    }

    /// Stores other entries, each in a write of its own.
    private static func fill(
        _ tier: DiskTier,
        of store: DiskStore,
        _ numbers: Range<Int>
    ) async throws {
        for number in numbers {
            _ = tier.enqueue(try store.entry(number))
            try await tier.flush()
        }
    }

    /// Opens the store with `.onRemoval`, and expects that its removal of nothing confirms the
    /// earlier one.
    private static func expectConfirmed(
        _ store: DiskStore,
        in files: FaultyFileSystem
    ) async throws {
        store.configuration.durability = .onRemoval
        let tier = try await store.open()
        #expect(try await !tier.remove(store.storeKey(1)))
        try await RemovalDurabilityTests.expectRemoved(store, in: files)
        await store.close()
    }

    /// The removal is in the log already, but no power cut was to be survived then.
    @Test(arguments: [End.closed, .killed, .sealed])
    func repeatedRemovalIsConfirmedThoughAnotherLifeWroteIt(end: End) async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, before) = try await Self.unsynchronised(files)
        let key = try store.storeKey(1)
        #expect(try await before.remove(key))
        if end == .sealed {
            try await Self.fill(before, of: store, 10..<40)
            let segments = files.paths.filter { $0.hasSuffix(".seg") }.count
            #expect(segments > 3, "the second one was begun")
            #expect(before.statistics.segmentsReclaimed == 0)
        }
        if end == .closed {
            await store.close()
        } else {
            files.endProcess()
        }
        try await Self.expectConfirmed(store, in: files)
    }

    /// The removal finds nothing, because the entry's segment was reclaimed.
    @Test func removalOfWhatAnotherLifeReclaimedIsConfirmed() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, before) = try await Self.unsynchronised(files)
        let key = try store.storeKey(1)
        var number = 10
        while before.currentToken(key.hash) != nil, number < 1_000 {
            _ = before.enqueue(try store.entry(number))
            try await before.flush()
            number += 1
        }
        #expect(before.statistics.segmentsReclaimed == 1)
        files.endProcess()
        try await Self.expectConfirmed(store, in: files)
    }

    /// The removal is in a segment whose name the device may not have.
    @Test func repeatedRemovalIsConfirmedThoughAnotherLifeMadeItsFile() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, before) = try await Self.unsynchronised(files)
        let key = try store.storeKey(1)
        // The first segments have names on the device.
        try await Self.fill(before, of: store, 10..<60)
        #expect(before.statistics.segmentsReclaimed == 0)
        #expect(try await before.remove(key))
        await store.close()
        try await Self.expectConfirmed(store, in: files)
    }

    /// The device fails to synchronise the removal of an earlier life, with the header of its segment
    /// if that life has begun it.
    @Test(arguments: [10, 40])
    func removalOfAnotherLifeIsRefusedUntilItsSegmentIsSynchronised(first: Int) async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, before) = try await Self.unsynchronised(files)
        let key = try store.storeKey(1)
        try await Self.fill(before, of: store, first..<40)
        #expect(try await before.remove(key))
        let path = try #require(await before.shards[0].openSegmentPath)
        try await Self.fill(before, of: store, 10..<40)
        #expect(before.statistics.segmentsReclaimed == 0)
        await store.close()
        store.configuration.durability = .onRemoval
        files.plan.unconfirmed = path
        files.plan.losesUnconfirmed = true
        let tier = try await store.open()
        #expect(try await store.version(39) == 0, "the shard is not empty")
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        files.plan = .init()
        #expect(try await !tier.remove(key))
        try await RemovalDurabilityTests.expectRemoved(store, in: files)
        await store.close()
    }
}
