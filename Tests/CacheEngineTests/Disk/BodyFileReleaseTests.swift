import CacheTestSupport
import Dispatch
import Testing

@testable import CacheEngine

/// The last holder of a large body's file waits for no device: the pool closes and unlinks it.
@Suite struct BodyFileReleaseTests {
    /// A store whose files are in memory, and whose pool has one thread.
    private static func storeOnOneThread(_ files: FaultyFileSystem) -> DiskStore {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 16, volume: .replaced(files))
        store.configuration.ioThreads = 1
        store.configuration.entryBytesMax = 1 << 20
        return store
    }

    @Test func lastReaderOfABodyThatMadeRoomLeavesItsFileToThePool() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = Self.storeOnOneThread(files)
        let tier = try await store.open()
        let pool = tier.shards[0].pool
        try await LargeBodyTests.write(0, version: 100, bytes: 400_000, in: store)
        try await tier.flush()
        var reader = try await store.read(0)?.detachedBody as? DiskBody
        let path = try #require(reader?.file.path)
        #expect(try await reader?.read(0..<1).count == 1)
        for number in 1..<20 {
            // The room of the body that is still read does not come back.
            _ = try? await LargeBodyTests.write(number, version: 100, bytes: 400_000, in: store)
            try await tier.flush()
        }
        #expect(try await store.read(0) == nil)
        let gate = DispatchSemaphore(value: 0)
        #expect(pool.submit { gate.wait() })
        let openCount = files.openCount
        reader = nil
        #expect(files.paths.contains(path) && files.openCount == openCount)
        gate.signal()
        #expect(await pool.run { true } == true)
        #expect(!files.paths.contains(path) && files.openCount == openCount - 1)
        await store.close()
    }

    /// A writer whose device fails before the first block is written.
    private static func failedWriter(
        in store: DiskStore,
        _ files: FaultyFileSystem
    ) async throws -> BodyWriter {
        let tier = try #require(store.tier)
        let writer = try await tier.beginBody(for: store.storeKey(1).hash, expectedBytes: nil)
        files.plan.writeError = 1_000
        let bytes = ByteChunk([UInt8](repeating: 1, count: 300_000))
        await #expect(throws: CacheError.self) { try await writer.append(bytes) }
        return writer
    }

    @Test func lastHolderOfAFailedWriterLeavesItsFileToThePool() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = Self.storeOnOneThread(files)
        let tier = try await store.open()
        let pool = tier.shards[0].pool
        var writer: BodyWriter? = try await Self.failedWriter(in: store, files)
        #expect(writer != nil)
        // The thread has left the writer once it does this.
        #expect(await pool.run { true } == true)
        let gate = DispatchSemaphore(value: 0)
        #expect(pool.submit { gate.wait() })
        let openCount = files.openCount
        writer = nil
        #expect(files.openCount == openCount)
        gate.signal()
        #expect(await pool.run { true } == true)
        #expect(files.openCount == openCount - 1)
        #expect(files.paths.allSatisfy { !$0.hasSuffix(".body") })
        await store.close()
    }
}
