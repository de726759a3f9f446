import CacheTestSupport
import Testing

@testable import CacheEngine

/// The room that the log and the bodies in separate files take from each other.
@Suite struct LogBesideBodiesTests {
    /// Stores small entries, twenty to a batch, and a large body after each `bodyEach` of them.
    private static func fill(
        _ store: DiskStore,
        _ numbers: Range<Int>,
        bodyEach: Int = .max
    ) async throws {
        let tier = try #require(store.tier)
        for number in numbers {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 19 { try await tier.flush() }
            guard number % bodyEach == bodyEach - 1 else { continue }
            let body = 100_000 + number
            #expect(
                try await LargeBodyTests.write(body, version: 4, bytes: 40_000, in: store)
                    == .stored
            )
        }
        try await tier.flush()
    }

    /// The log and the bodies make room in turn, by age: each has a share by what is stored.
    @Test func logAndBodiesShareTheDiskByWhatIsStored() async throws {
        let store = DiskStore(segments: 32)
        let tier = try await store.open()
        try await Self.fill(store, 0..<6_000, bodyEach: 40)
        let segments = await tier.shards[0].segmentCount
        #expect((12...24).contains(segments), "\(segments)")
        #expect(try await store.version(5_600) == 4)
        #expect(store.bodyFiles().count > 10)
        #expect(store.fileBytes <= store.configuration.capacityBytes)
        await store.close()
    }

    @Test func logGrowsBackWhenNoMoreBodiesAreStored() async throws {
        let store = DiskStore(segments: 32)
        let tier = try await store.open()
        try await Self.fill(store, 0..<400, bodyEach: 4)
        let segments = await tier.shards[0].segmentCount
        #expect((3...8).contains(segments), "\(segments)")
        try await Self.fill(store, 400..<3_000)
        #expect(await tier.shards[0].segmentCount >= 30)
        #expect(try await store.version(2_000) == 4)
        #expect(store.fileBytes <= store.configuration.capacityBytes)
        await store.close()
    }

    /// A body takes room from the log, but not the segment into which a reclaim writes what it
    /// keeps: neither from a log that fills the disk nor from a small one, and wherever the open
    /// segment ends.
    @Test(arguments: [20, 200, 500], [2, 4, 11, 14, 30, 40])
    func pinnedEntriesOutliveTheirSegmentBesideBodies(first: Int, each: Int) async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<first {
            let flags: EntryHead.Flags = number < 20 ? .pinned : []
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: flags))
            if number % 20 == 19 { try await tier.flush() }
        }
        for round in 0..<60 {
            for number in 0..<each {
                let number = 1_000 + each * round + number
                _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            }
            try await tier.flush()
            let body = 10_000 + round
            #expect(
                try await LargeBodyTests.write(body, version: 4, bytes: 36_000, in: store)
                    == .stored
            )
        }
        try await tier.flush()
        for number in 0..<20 { #expect(try await store.version(number) == 4, "\(number)") }
        await store.close()
    }

    /// Each entry needs almost half of a segment, so that no two fit into one beside its header.
    @Test func smallerCapacityIsReachedBesidePinnedEntriesOfHalfASegment() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        let tag = String(repeating: "t", count: 15_000)
        for number in 0..<4 {
            let entry = try store.entry(
                number,
                version: 4,
                bytes: 16_000,
                tags: [tag],
                flags: .pinned
            )
            #expect(tier.enqueue(entry) == .stored)
            try await tier.flush()
        }
        try await tier.setCapacity(store.configuration.capacityBytes - 6 * (64 << 10))
        #expect(store.fileBytes <= store.configuration.capacityBytes - 6 * (64 << 10))
        await store.close()
    }

    /// After a kill no segment is open: a reclaim begins a clean one for what it keeps.
    @Test func pinnedEntriesOutliveASmallerCapacityAtTheOpening() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<500 {
            let flags: EntryHead.Flags = number.isMultiple(of: 25) ? .pinned : []
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: flags))
            if number % 20 == 19 { try await tier.flush() }
        }
        try await tier.flush()
        store.volume = .replaced(files.copy(afterPowerCut: false))
        await store.close()
        store.configuration.capacityBytes -= 3 * (64 << 10)
        _ = try await store.open()
        for number in stride(from: 0, to: 500, by: 25) {
            #expect(try await store.version(number) == 4, "\(number)")
        }
        await store.close()
    }
}
