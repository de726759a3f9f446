import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// A closed tier leaves its files alone: another cache may use the directory by now.
@Suite(.timeLimit(.minutes(1))) struct ClosedTierTests {
    let files = FaultyFileSystem(seed: 1)

    /// The bytes of every segment.
    private var segments: [String: [UInt8]] {
        files.snapshot().filter { $0.key.hasSuffix(".seg") }
    }

    @Test func bodyBehindTheEndOfATierLeavesTheNextOneAlone() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.entryBytesMax = 1 << 20
        let tier = try await store.open()
        // The segments take the whole capacity, so each piece of the body needs one of them.
        for number in 0..<1_000 {
            _ = tier.enqueue(try store.entry(number, version: 4))
            if number % 40 == 39 { try await tier.flush() }
        }
        _ = tier.enqueue(try store.entry(2_000, version: 4, tags: ["t"]))
        try await tier.flush()
        let writer = try await tier.beginBody(
            for: store.storeKey(3_000).hash,
            expectedBytes: nil
        )
        try await writer.append(ByteChunk("begun"))
        await store.close()

        let next = DiskStore(volume: .replaced(files))
        next.configuration = store.configuration
        let owner = try await next.open()
        #expect(try await next.version(2_000) == 4)
        _ = try await owner.removeAll(in: .tag("t"))
        _ = owner.enqueue(try next.entry(4_000, version: 4))
        try await owner.flush()
        let before = segments
        let piece = ByteChunk(DiskStore.body(3_000, version: 4, bytes: 30_000))
        var refusal: CacheError?
        for _ in 0..<20 where refusal == nil {
            do { try await writer.append(piece) } catch let error as CacheError { refusal = error }
        }
        #expect(refusal?.code == .shutDown)
        let areUnchanged = segments == before
        #expect(areUnchanged)
        await writer.abandon()
        _ = try await next.reopen()
        #expect(try await next.version(2_000) == nil, "the purge holds")
        #expect(try await next.version(4_000) == 4)
        await next.close()
    }

    /// The record of the fresh metadata was not written: the older one still needs the file.
    @Test func removalBehindTheEndUnlinksNoBody() async throws {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 64, volume: .replaced(files))
        // One thread does the jobs in their order.
        store.configuration.ioThreads = 1
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        #expect(try await LargeBodyTests.write(1, in: store) == .stored)
        try await tier.flush()
        var body = try await store.read(1)?.detachedBody as? DiskBody
        #expect(tier.enqueue(try store.entry(1, body: []), body: body) == .stored)
        body = nil
        let shard = tier.shards[0]
        shard.state.withLock { $0.condition = .closed }
        tier.enqueueRemoval(try store.storeKey(1).hash)
        #expect(await shard.pool.run { true } == true)
        #expect(files.paths.contains { $0.hasSuffix(".body") })
        await store.close()
    }

    // MARK: A whole cache

    /// A body whose source ignores the cancellation of its reader.
    private final class StubbornBody: BodySource {
        private let body = ManualBody()

        func feed(_ chunk: ByteChunk) { body.feed(chunk) }
        func finish() { body.finish() }
        func next() async throws -> ByteChunk? {
            try await Task.detached { [body] in try await body.next() }.value
        }
        func cancel() {}
    }

    private static func url(_ name: some CustomStringConvertible) -> CacheRequest {
        CacheRequest(url: "http://example.com/\(name)")
    }

    /// A text of 50,000 bytes that does not compress.
    private static func noise(_ seed: Int) -> String {
        var random = SeededRandom(seed: UInt64(seed))
        var text = ""
        while text.utf8.count < 50_000 { text += String(random.next(), radix: 36) }
        return text
    }

    private func stage(_ origin: ScriptedOrigin, _ clock: TestClock) async throws -> Stage {
        try await Stage(origin, clock: clock) {
            $0.memory = .disabled
            $0.backing = .disk(path: "/cache", capacity: .megabytes(4))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.maximumEntryShare = 0.9
        }
    }

    /// The body ignores cancellation, so `shutDown` gives its delivery up at the limit.
    @Test func bodyBehindATimedOutShutDownLeavesTheNextCacheAlone() async throws {
        let body = StubbornBody()
        let clock = TestClock()
        let origin = ScriptedOrigin { request, number in
            let fields: HeaderFields = ["Cache-Control": "max-age=600", "Cache-Tag": "t"]
            guard request.url.hasSuffix("endless") else {
                return .whole(fields: fields, body: Self.noise(number))
            }
            return OriginResponse(status: 200, fields: fields, body: BodyStream(body))
        }
        let first = try await stage(origin, clock)
        let response = try await first.cache.respond(to: Self.url("endless"))
        let piece = ByteChunk(DiskStore.body(1, version: 4, bytes: 200_000))
        for _ in 0..<8 { body.feed(piece) }
        #expect(await eventually { files.paths.contains { $0.hasSuffix(".body") } })
        // More than the capacity, so each further piece of the body needs a segment.
        for number in 0..<100 {
            _ = try await first.cache.respond(to: Self.url(number)).body.collect()
        }
        try await first.cache.flush()
        let hasEnded = Atomic(false)
        let ending = Task {
            await first.cache.shutDown()
            hasEnded.store(true, ordering: .releasing)
        }
        // The clock then stands still: the disk that closes has a limit of its own.
        let isClosing = await eventually {
            !first.cache.services.supervisor.isOpen && clock.sleeperCount == 1
        }
        #expect(isClosing && !hasEnded.load(ordering: .acquiring))
        clock.advance(seconds: 10)
        await ending.value

        let second = try await stage(origin, clock)
        _ = try await second.cache.purge(tag: "t")
        _ = try await second.cache.respond(to: Self.url("new")).body.collect()
        try await second.cache.flush()
        let before = segments
        for _ in 0..<40 { body.feed(piece) }
        body.finish()
        _ = try? await response.body.collect()
        let areUnchanged = segments == before
        #expect(areUnchanged)
        await second.end()
        let third = try await stage(origin, clock)
        #expect(try await third.cache.storedResponse(for: Self.url("new")) != nil)
        for number in 0..<100 {
            let stored = try await third.cache.storedResponse(for: Self.url(number))
            #expect(stored == nil, "\(number) is back")
        }
        await third.end()
    }
}
