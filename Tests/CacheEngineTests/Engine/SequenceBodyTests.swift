import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// Bodies made of an asynchronous sequence.
@Suite struct SequenceBodyTests {
    private static func stream(
        _ pieces: [String],
        then error: (any Error)? = nil
    ) -> AsyncThrowingStream<ByteChunk, any Error> {
        AsyncThrowingStream { continuation in
            for piece in pieces { continuation.yield(ByteChunk(piece)) }
            continuation.finish(throwing: error)
        }
    }

    @Test func chunksAreTheBody() async throws {
        // An empty chunk is no end.
        let body = BodyStream(Self.stream(["a", "", "bc"]), count: 3)
        #expect(body.count == 3)
        #expect(try await body.collect().text == "abc")
    }

    /// Without the error, a second reader takes the rest for the whole, or a broken body for an empty
    /// one.
    @Test(arguments: ["whole", "begun", "broken"])
    func bodyThatComesOnceIsReadOnce(first: String) async throws {
        let fault = first == "broken" ? CacheError(.originFailed, detail: "gone") : nil
        let body = BodyStream(Self.stream(["a", "b"], then: fault))
        switch first {
        case "whole": #expect(try await body.collect().text == "ab")
        case "begun":
            var iterator = body.makeAsyncIterator()
            #expect(try await iterator.next()?.text == "a")
        default: await #expect(throws: CacheError.self) { try await body.collect() }
        }
        let error = await #expect(throws: CacheError.self) { try await body.collect() }
        #expect(error?.code == .requestInvalid)
    }

    @Test func sequenceThatThrowsBreaksTheBodyOff() async throws {
        let fault = CacheError(.originFailed, detail: "gone")
        var iterator = BodyStream(Self.stream(["a"], then: fault)).makeAsyncIterator()
        #expect(try await iterator.next()?.text == "a")
        await #expect(throws: CacheError.self) { try await iterator.next() }
    }

    @Test func nothingIsProducedBeforeItIsRead() async throws {
        let produced = Mutex(0)
        let numbers = AsyncStream<ByteChunk>(unfolding: {
            produced.withLock { $0 += 1 }
            return ByteChunk("x")
        })
        var iterator = BodyStream(numbers).makeAsyncIterator()
        #expect(produced.withLock { $0 } == 0)
        _ = try await iterator.next()
        #expect(produced.withLock { $0 } == 1)
    }

    @Test(.timeLimit(.minutes(1))) func releasedBodyEndsTheSequence() async throws {
        let (ends, end) = AsyncStream<Void>.makeStream()
        do {
            let numbers = AsyncStream<ByteChunk> { continuation in
                continuation.yield(ByteChunk("x"))
                continuation.onTermination = { _ in end.yield() }
            }
            var iterator = BodyStream(numbers).makeAsyncIterator()
            _ = try await iterator.next()
        }
        for await _ in ends { break }
    }

    @Test func cacheStoresIt() async throws {
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: BodyStream(Self.stream(["he", "llo"]))
            )
        }
        let cache = try await HTTPCache(origin: origin)
        let request = CacheRequest(url: "http://example.com/")
        for _ in 0..<2 {
            #expect(try await cache.respond(to: request).body.collect().text == "hello")
        }
        #expect(origin.count == 1)
        await cache.shutDown()
    }
}
