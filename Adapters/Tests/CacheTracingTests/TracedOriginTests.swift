import CacheEngine
import CacheTestSupport
import CacheTracing
import InMemoryTracing
import Testing
import Tracing

/// Each request to the origin is one span, which ends when the exchange has ended.
@Suite(.timeLimit(.minutes(1))) struct TracedOriginTests {
    private let tracer = InMemoryTracer()
    private let request = CacheRequest(url: "http://example.test/a?token=secret")

    private func cache(_ origin: ScriptedOrigin) async throws -> HTTPCache {
        try await HTTPCache(origin: TracedOrigin(origin, tracer: tracer))
    }

    @Test func aMissIsASpanAndAHitIsNot() async throws {
        let cache = try await cache(ScriptedOrigin())
        for _ in 0..<2 { _ = try await cache.respond(to: request).body.collect() }
        await cache.shutDown()
        #expect(tracer.finishedSpans.count == 1 && tracer.activeSpans.isEmpty)
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.operationName == "GET" && span.kind == .client)
        #expect(span.attributes.get("http.request.method") == "GET")
        #expect(span.attributes.get("url.full") == "http://example.test/a")
        #expect(span.attributes.get("http.response.status_code") == 200)
        #expect(span.status == nil && span.errors.isEmpty)
    }

    /// A combining mark joins the sign before it, which is then no question mark.
    @Test(arguments: [
        ("http://me:secret@a.test/b@c?secret", "http://a.test/b@c"),
        ("http://me:sec@ret@a.test", "http://a.test"),
        ("http://a.test/b?\u{301}secret", "http://a.test/b"),
        ("http://a.test#\u{301}secret@", "http://a.test"),
    ])
    func noSecretOfAURLIsInASpan(url: String, shown: String) async throws {
        let origin = TracedOrigin(ScriptedOrigin(), tracer: tracer)
        _ = try await origin.fetch(OriginRequest(url: url))
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.attributes.get("url.full") == .string(shown))
    }

    @Test func theContextReachesTheOrigin() async throws {
        let origin = ScriptedOrigin()
        let cache = try await cache(origin)
        try await tracer.withSpan("caller") { caller in
            _ = try await cache.respond(to: request).body.collect()
            let span = try #require(tracer.finishedSpans.first)
            #expect(span.parentSpanID == caller.spanID && span.traceID == caller.traceID)
            let fields = try #require(origin.requests.first).fields
            #expect(fields[InMemoryTracer.traceIDKey] == span.traceID)
            #expect(fields[InMemoryTracer.spanIDKey] == span.spanID)
        }
        await cache.shutDown()
    }

    @Test func aSpanOfTheOriginIsAChild() async throws {
        let origin = ScriptedOrigin { [tracer] _, _ in
            tracer.withSpan("inner") { _ in .whole(body: "x") }
        }
        _ = try await TracedOrigin(origin, tracer: tracer).fetch(
            OriginRequest(url: "http://a.test/")
        )
        #expect(tracer.finishedSpans.map(\.operationName) == ["inner", "GET"])
        #expect(tracer.finishedSpans[0].parentSpanID == tracer.finishedSpans[1].spanID)
    }

    @Test func aFailureIsRecorded() async throws {
        let origin = ScriptedOrigin()
        origin.cutOff()
        let cache = try await cache(origin)
        await #expect(throws: CacheError.self) { try await cache.respond(to: request) }
        await cache.shutDown()
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.status?.code == .error)
        #expect(span.errors.map { ($0.error as? CacheError)?.code } == [.originFailed])
        #expect(tracer.activeSpans.isEmpty)
    }

    @Test(arguments: [(200, false), (304, false), (404, true), (503, true)])
    func aStatusFrom400IsAnError(status: Int, isError: Bool) async throws {
        let origin = TracedOrigin(ScriptedOrigin(status: status), tracer: tracer)
        _ = try await origin.fetch(OriginRequest(url: "http://a.test/"))
        #expect((tracer.finishedSpans.first?.status?.code == .error) == isError)
    }

    @Test func theSpanLastsUntilTheBodyEnds() async throws {
        var body = try await body(of: ["a", "b"]).makeAsyncIterator()
        #expect(try await body.next() == ByteChunk("a"))
        #expect(try await body.next() == ByteChunk("b"))
        #expect(tracer.finishedSpans.isEmpty)
        #expect(try await body.next() == nil)
        #expect(tracer.finishedSpans.count == 1)
    }

    @Test func aBodyThatBreaksOffIsRecorded() async throws {
        let error = CacheError(.bodyTruncated, detail: "broken off")
        let body = try await body(of: ["a"], endingIn: error)
        await #expect(throws: CacheError.self) { try await body.collect() }
        let span = try #require(tracer.finishedSpans.first)
        #expect(span.errors.count == 1 && span.status?.code == .error)
    }

    @Test func aBodyThatIsDroppedEndsItsSpanWithoutAnError() async throws {
        do {
            let body = try await body(of: ["a", "b"])
            var iterator = body.makeAsyncIterator()
            _ = try await iterator.next()
        }
        #expect(tracer.activeSpans.isEmpty)
        #expect(tracer.finishedSpans.map { $0.errors.count } == [0])
    }

    private func body(
        of texts: [String],
        endingIn error: CacheError? = nil
    ) async throws -> BodyStream {
        let (pieces, sender) = AsyncThrowingStream.makeStream(of: ByteChunk.self)
        for text in texts { sender.yield(ByteChunk(text)) }
        sender.finish(throwing: error)
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(status: 200, body: BodyStream(pieces))
        }
        return try await TracedOrigin(origin, tracer: tracer)
            .fetch(OriginRequest(url: "http://a.test/")).body
    }
}
