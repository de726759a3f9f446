import CacheTestSupport
import Dispatch
import Testing

@testable import CacheEngine

/// The device cannot write the first page of one segment's file: the log goes on without that file.
@Suite(.timeLimit(.minutes(1))) struct UnwritableHeaderTests {
    private let files = FaultyFileSystem(seed: 1)
    private let gate = DispatchSemaphore(value: 0)

    private var segmentCount: Int { files.paths.filter { $0.hasSuffix(".seg") }.count }

    /// A store whose first segment holds the entries 0, which is pinned, to 19, and cannot be retired.
    private func store(
        segments: Int = 8,
        _ durability: DiskConfiguration.Durability = .none
    ) async throws -> DiskStore {
        let store = DiskStore(segments: segments, volume: .replaced(files))
        store.configuration.durability = durability
        store.configuration.flushMilliseconds = 1_000_000
        try await store.open()
        try await Self.fill(store, 0..<20)
        files.plan.unwritableStart = files.paths.first { $0.hasSuffix(".seg") }
        try #require(files.plan.unwritableStart != nil)
        return store
    }

    /// Stores small entries, twenty to a batch, and loses none of them.
    private static func fill(_ store: DiskStore, _ numbers: Range<Int>) async throws {
        let tier = try #require(store.tier)
        for number in numbers {
            let flags: EntryHead.Flags = number == 0 ? .pinned : []
            let entry = try store.entry(number, version: 4, bytes: 900, flags: flags)
            #expect(tier.enqueue(entry) == .stored)
            if number % 20 == 19 { try await tier.flush() }
        }
        try await tier.flush()
    }

    /// Expects that the last of the entries below `end` is there, and that its removal holds.
    private static func expectWorking(_ store: DiskStore, below end: Int) async throws {
        let tier = try #require(store.tier)
        #expect(tier.statistics.shardsFailed == 0)
        #expect(try await store.version(end - 1) == 4)
        #expect(try await tier.remove(store.storeKey(end - 1)))
        #expect(try await store.version(end - 1) == nil)
        #expect(try await store.version(end - 2) == 4)
    }

    /// The file that takes the place of the first segment has the same bad page.
    @Test(arguments: [4, 8], [DiskConfiguration.Durability.none, .onRemoval])
    func logTurnsOnBesideAHeaderThatCannotBeWritten(
        segments: Int,
        durability: DiskConfiguration.Durability
    ) async throws {
        let store = try await store(segments: segments, durability)
        let tier = try #require(store.tier)
        try await Self.fill(store, 20..<1_200)
        #expect(tier.statistics.segmentsReclaimed > 2 * segments)
        #expect(tier.statistics.writeErrors > 0)
        #expect(tier.statistics.fileBytes <= segments * (64 << 10))
        try await Self.expectWorking(store, below: 1_200)
        // With few segments none is kept in reserve, and a reclaim without one keeps nothing.
        if segments == 8 { #expect(try await store.version(0) == 4, "it is pinned") }
        let again = try await store.reopen()
        #expect(again.recovery.readErrors == 0)
        #expect(try await store.version(1_199) == nil, "it was removed")
        #expect(try await store.version(1_198) == 4)
        try await Self.fill(store, 1_200..<2_000)
        try await Self.expectWorking(store, below: 2_000)
        #expect(files.totalBytes <= store.configuration.capacityBytes)
        await store.close()
    }

    /// The page was bad in that file alone.
    @Test func fileInThePlaceOfABadOneIsUsed() async throws {
        let store = try await store()
        let tier = try #require(store.tier)
        var number = 20
        while tier.statistics.writeErrors == 0, number < 1_000 {
            try await Self.fill(store, number..<number + 20)
            number += 20
        }
        #expect(tier.statistics.writeErrors == 1)
        files.plan = .init()
        try await Self.fill(store, number..<number + 800)
        #expect(tier.statistics.writeErrors == 1)
        #expect(await tier.shards[0].segmentCount == 8)
        #expect(segmentCount == 8)
        await store.close()
    }

    /// The device may work again, so nothing goes as long as it writes no page of the file.
    @Test func segmentStaysIfTheDeviceWritesNothing() async throws {
        let store = try await store()
        let tier = try #require(store.tier)
        files.plan = .init()
        try await Self.fill(store, 20..<800)
        let held = tier.statistics.indexEntries
        let oldest = try #require(await tier.shards[0].oldestSegmentPath)
        files.plan.unwritable = oldest
        #expect(await !tier.shards[0].reclaimOldestSegment())
        files.plan = .init()
        files.plan.writeError = 1_000
        #expect(await !tier.shards[0].reclaimOldestSegment())
        files.plan = .init()
        #expect(tier.statistics.indexEntries == held)
        #expect(files.paths.contains(oldest))
        #expect(await tier.shards[0].reclaimOldestSegment())
        await store.close()
    }

    /// Nothing of the segment is in the index, so the removal finds no entry.
    @Test func removalOfWhatWentWithItsFileHoldsAfterPowerCuts() async throws {
        let store = try await store(.onRemoval)
        let tier = try #require(store.tier)
        let key = try store.storeKey(1)
        var number = 20
        while tier.currentToken(key.hash) != nil, number < 1_000 {
            try await Self.fill(store, number..<number + 20)
            number += 20
        }
        #expect(tier.statistics.writeErrors == 1)
        #expect(try await !tier.remove(key))
        try await RemovalDurabilityTests.expectRemoved(store, in: files)
        await store.close()
    }

    /// A read from the unlinked file goes on, and the room of the file comes back after it.
    @Test func unlinkedFileKeepsItsRoomUntilItsReaderHasLeft() async throws {
        let store = try await store()
        let tier = try #require(store.tier)
        files.plan.cold = 1_000
        let hasBegun = Race<Void>()
        files.stopNextRead { [gate] in
            hasBegun.finish(.success(()))
            gate.wait()
        }
        let read = Task { try? await store.version(1) }
        try await hasBegun.result()
        try await Self.fill(store, 20..<600)
        #expect(tier.statistics.writeErrors > 0)
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
        #expect(segmentCount == 7)
        gate.signal()
        #expect(await read.value == nil)
        files.plan = .init()
        try await Self.fill(store, 600..<800)
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
        #expect(segmentCount == 8)
        #expect(tier.statistics.shardsFailed == 0)
        await store.close()
    }
}

extension DiskShard {
    fileprivate var oldestSegmentPath: String? { order.first.map { segmentPath($0) } }
}
