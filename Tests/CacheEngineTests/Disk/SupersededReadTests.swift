import CacheTestSupport
import Dispatch
import HTTPCaching
import Testing

@testable import CacheEngine

/// A large body that is replaced while its older record is read is no miss.
@Suite(.timeLimit(.minutes(1))) struct SupersededReadTests {
    private let files = FaultyFileSystem(seed: 1)
    private let pool = IOPool(threadCount: 1, jobsMax: 16)
    private let gate = DispatchSemaphore(value: 0)

    @Test func readOfAReplacedLargeBodyFindsTheNewOne() async throws {
        let body = String(repeating: "0123456789abcdef", count: 100_000)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=600"], body: body)
        let stage = try await Stage(origin) {
            $0.memory = .disabled
            $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.pool = pool
        }
        _ = try await stage.get()
        try await stage.cache.flush()
        files.plan.cold = 1_000
        let services = stage.cache.services
        let disk = try #require(services.tiers.backing as? DiskTier)
        let (key, _) = try services.key(of: CacheRequest(url: Stage.url))
        guard case .hit(let old, _) = await disk.readWaiting(key.hash, key: key.bytes) else {
            Issue.record("not stored")
            return
        }
        // Another version, whose body lies in a file.
        let writer = try await disk.beginBody(for: key.hash, expectedBytes: body.utf8.count)
        try await writer.append(ByteChunk([UInt8](body.utf8)))
        let file = try await writer.finish()
        try await pool.hold(until: gate)
        async let read = disk.readWaiting(key.hash, key: key.bytes)
        for _ in 0..<1_000 { await Task.yield() }
        #expect(disk.accept(old.entry, body: file) == .stored)
        gate.signal()
        disk.ring(key.hash)
        guard case .hit(let found, _) = await read else {
            Issue.record("a miss, though a version is stored")
            return
        }
        #expect(found.detachedBody?.count == body.utf8.count)
        await stage.end()
    }
}
