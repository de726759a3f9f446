import CacheTestSupport
import Foundation
import Testing

@testable import CacheEngine

/// The number of segments that a directory of a capacity has.
@Suite struct DiskGeometryTests {
    @Test(arguments: [
        // Too small for four segments.
        (200 << 10, 4, 0),
        // One shard of small segments.
        (4 << 20, 4, 15),
        // Segments of 4 MiB, and of more once a shard has 512 MiB.
        (1 << 30, 8, 8 * 31), (4 << 30, 16, 16 * 63), (10 << 30, 16, 16 * 79),
        (10 << 30, 4, 4 * 79), (10 << 30, 100, 16 * 79),
        // The largest segments.
        (16 << 40, 16, 16 * 4_095),
        // A place in the index has no room for more.
        (Int.max, 16, 16 * 0xFFFE),
    ])
    func capacityGivesTheNumberOfSegments(_ row: (Int, Int, Int)) {
        let segments = DiskGeometry.segmentsMax(
            directory: TemporaryFolder().path + "/none",
            capacityBytes: row.0,
            openFilesMax: .max,
            processors: row.1
        )
        #expect(segments == row.2)
    }

    /// The log takes at most half of the files, and a quarter in a new directory.
    @Test(arguments: [
        (1 << 30, 8, 1_024, 8 * 31), (20 << 30, 16, 1_024, 16 * 9), (10 << 30, 4, 1_024, 4 * 39),
        // Fewer shards.
        (20 << 30, 16, 256, 8 * 9), (4 << 30, 16, 64, 15),
        // The largest segments.
        (100 << 30, 16, 1_024, 16 * 24), (1 << 40, 16, 1_024, 16 * 32), (1 << 40, 16, 1, 16 * 4),
    ])
    func segmentsAreAPartOfTheFilesThatTheProcessMayOpen(_ row: (Int, Int, Int, Int)) {
        let segments = DiskGeometry.segmentsMax(
            directory: TemporaryFolder().path + "/none",
            capacityBytes: row.0,
            openFilesMax: row.2,
            processors: row.1
        )
        #expect(segments == row.3)
    }

    /// A directory that was divided for more files keeps its division.
    @Test func logLeavesHalfOfTheFilesToTheProcess() async throws {
        let store = DiskStore(segments: 24, volume: .replaced(FaultyFileSystem(seed: 1)))
        store.configuration.openFilesMax = 20
        let tier = try await store.open()
        #expect(tier.recovery.notes.count == 1)
        #expect(tier.recovery.notes[0].contains("at most 10 of 24 segments"))
        func fillTheLog() async throws {
            for number in 0..<100 {
                let entry = try store.entry(number, version: 4, bytes: 9_000)
                #expect(tier.enqueue(entry) == .stored)
                try await tier.flush()
            }
            #expect(await tier.shards[0].segmentCount == 10)
        }
        try await fillTheLog()
        // Bodies take the rest of the capacity, and older segments.
        for number in 100..<140 {
            try await LargeBodyTests.write(number, version: 4, bytes: 60_000, in: store)
            try await tier.flush()
        }
        try await fillTheLog()
        let reclaimed = tier.statistics.bodiesReclaimed
        #expect(reclaimed > 0)
        try await fillTheLog()
        #expect(tier.statistics.bodiesReclaimed == reclaimed, "the log takes no more from them")
        #expect(tier.statistics.writeErrors == 0)
        await store.close()
    }

    /// The newest segments stay, and the pinned entries of the others.
    @Test func logOfADirectoryThatWasDividedForMoreFilesShrinksAtOpening() async throws {
        let store = DiskStore(segments: 24)
        var tier = try await store.open()
        for number in 0..<140 {
            let flags: EntryHead.Flags = number % 20 == 0 ? .pinned : []
            let entry = try store.entry(number, version: 4, bytes: 9_000, flags: flags)
            #expect(tier.enqueue(entry) == .stored)
            try await tier.flush()
        }
        #expect(await tier.shards[0].segmentCount > 20)
        await store.close()
        store.configuration.openFilesMax = 20
        tier = try await store.open()
        #expect(await tier.shards[0].segmentCount == 10)
        let paths = FileManager.default.enumerator(atPath: store.directory)?.allObjects ?? []
        #expect(paths.count { ($0 as? String)?.hasSuffix(".seg") ?? false } == 10)
        for number in Array(stride(from: 0, to: 100, by: 20)) + Array(115..<140) {
            #expect(try await store.version(number, bytes: 9_000) == 4, "\(number)")
        }
        #expect(try await store.version(1, bytes: 9_000) == nil)
        #expect(tier.statistics.writeErrors == 0)
        await store.close()
    }

    /// With many shards, the share of one is little more than an entry may take.
    @Test func bodyOfEverySizeThatIsAllowedHasRoom() async throws {
        let store = DiskStore()
        store.configuration.capacityBytes = 64 << 20
        store.configuration.segmentBytes = nil
        store.configuration.shardCount = 16
        store.configuration.entryBytesMax = (64 << 20) / 20
        let tier = try await store.open()
        let sizes = stride(from: 1 << 20, to: 4 << 20, by: 64 << 10)
        let allowed = sizes.filter { tier.hasRoom(entryBytes: $0, bodyBytes: $0) }
        #expect(allowed.count > 5 && allowed.count < 32)
        let hash = try store.storeKey(1).hash
        // No codec makes the bytes fewer.
        let piece = ByteChunk(DiskStore.body(1, version: 4, bytes: 64 << 10))
        for size in allowed {
            let writer = try await tier.beginBody(for: hash, expectedBytes: size)
            for _ in 0..<size / piece.count { try await writer.append(piece) }
            await writer.abandon()
        }
        await store.close()
    }

    /// Segments of 4 MiB, as in a directory of 1 GiB, are 1,600 in one of 10 GiB; laid out anew it
    /// would have 8 times 79.
    @Test func grownDirectoryKeepsItsSegments() async throws {
        let folder = TemporaryFolder()
        var configuration = DiskConfiguration(directory: folder.path, capacityBytes: 1 << 30)
        configuration.shardCount = 8
        let tier = try await DiskTier.open(configuration)
        await tier.close()
        let segments = DiskGeometry.segmentsMax(
            directory: folder.path,
            capacityBytes: 10 << 30,
            openFilesMax: .max,
            processors: 8
        )
        #expect(segments == 8 * 319)
    }

    @Test func fullTierHasThatManySegments() async throws {
        let capacity = 4 << 20
        let store = DiskStore()
        store.configuration.segmentBytes = nil
        store.configuration.shardCount = nil
        store.configuration.capacityBytes = capacity
        let tier = try await store.open()
        var random = SeededRandom(seed: 1)
        // More than the capacity, in bytes that no codec makes fewer.
        for number in 0..<120 {
            let body = (0..<5_000).flatMap { _ in
                withUnsafeBytes(of: random.next()) { Array($0) }
            }
            let entry = try store.entry(number, body: body)
            #expect(tier.enqueue(entry) == .stored)
            try await tier.flush()
        }
        let paths = FileManager.default.enumerator(atPath: store.directory)?.allObjects ?? []
        let segments = paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".seg") }
        let segmentsMax = DiskGeometry.segmentsMax(
            directory: store.directory,
            capacityBytes: capacity,
            openFilesMax: .max,
            processors: 4
        )
        #expect(segments.count == segmentsMax)
        await store.close()
    }
}
