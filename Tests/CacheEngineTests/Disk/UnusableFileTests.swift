import CacheTestSupport
import Foundation
import Testing

@testable import CacheEngine

/// Files that an opening can neither use nor unlink count as used, so that the capacity holds.
@Suite struct UnusableFileTests {
    private let files = FaultyFileSystem(seed: 1)

    private var segments: [String] { files.paths.filter { $0.hasSuffix(".seg") } }

    private static func fill(_ store: DiskStore, _ numbers: Range<Int>) async throws {
        let tier = try #require(store.tier)
        for number in numbers {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 19 { try await tier.flush() }
        }
        try await tier.flush()
    }

    /// Another user owns some segments, and the directory too, until it is given to this one.
    @Test func segmentsThatCanBeNeitherOpenedNorUnlinkedTakeTheirRoom() async throws {
        let store = DiskStore(volume: .replaced(files))
        _ = try await store.open()
        try await Self.fill(store, 0..<800)
        await store.close()
        let owned = Set(segments.prefix(3))
        try #require(segments.count == 8)
        files.plan.forbidden = owned
        files.plan.keepsForbidden = true
        let tier = try await store.open()
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
        try await Self.fill(store, 1_000..<1_800)
        #expect(segments.count == 8)
        #expect(files.totalBytes <= store.configuration.capacityBytes)
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
        #expect(tier.statistics.shardsFailed == 0)
        #expect(try await store.version(1_799) == 4)
        await store.close()
        files.plan.keepsForbidden = false
        let again = try await store.open()
        #expect(again.statistics.fileBytes == 5 * (64 << 10))
        #expect(owned.isDisjoint(with: files.paths))
        files.plan = .init()
        try await Self.fill(store, 2_000..<2_800)
        #expect(again.statistics.fileBytes == 8 * (64 << 10))
        #expect(segments.count == 8)
        await store.close()
    }

    /// The body was not finished when its process was killed.
    @Test func bodyWithoutAnEntryThatCannotBeUnlinkedTakesItsRoom() async throws {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 16, volume: .replaced(files))
        store.configuration.entryBytesMax = 1 << 20
        let first = try await store.open()
        let writer = try await first.beginBody(for: store.storeKey(1).hash, expectedBytes: nil)
        try await writer.append(ByteChunk(DiskStore.body(1, version: 4, bytes: 1_000_000)))
        let killed = files.copy(afterPowerCut: false)
        await writer.abandon()
        await store.close()
        store.volume = .replaced(killed)
        let path = try #require(killed.paths.first { $0.hasSuffix(".body") })
        let bytes = try #require(killed.bytes(of: path)).count
        try #require(bytes > 700_000)
        killed.plan.forbidden = [path]
        killed.plan.keepsForbidden = true
        let tier = try await store.open()
        #expect(tier.statistics.fileBytes >= bytes)
        for number in 10..<40 {
            try await LargeBodyTests.write(number, version: 4, bytes: 400_000, in: store)
            try await tier.flush()
            #expect(killed.totalBytes <= store.configuration.capacityBytes, "\(number)")
        }
        #expect(try await store.version(39) == 4)
        #expect(killed.bytes(of: path) != nil)
        killed.plan = .init()
        for number in 40..<43 {
            try await LargeBodyTests.write(number, version: 4, bytes: 400_000, in: store)
        }
        #expect(killed.bytes(of: path) == nil, "it has made room")
        #expect(try await store.version(39) == 4)
        await store.close()
    }

    /// The cache did not make a link or a directory that stands in the place of a body.
    @Test func sizeOfAPathIsThatOfAFile() throws {
        let system = SystemFileSystem()
        let folder = FileManager.default.temporaryDirectory.path() + "/size-" + UUID().uuidString
        try system.makeDirectory(folder)
        defer { try? FileManager.default.removeItem(atPath: folder) }
        let path = folder + "/file"
        try Data(repeating: 1, count: 10).write(to: URL(filePath: path))
        try FileManager.default.createSymbolicLink(
            atPath: folder + "/link",
            withDestinationPath: path
        )
        #expect(try system.size(ofPath: path) == 10)
        #expect(throws: FileFault.link) { try system.size(ofPath: folder + "/link") }
        #expect(throws: FileFault.link) { try system.size(ofPath: folder) }
        #expect(throws: FileFault.notFound) { try system.size(ofPath: folder + "/none") }
    }
}
