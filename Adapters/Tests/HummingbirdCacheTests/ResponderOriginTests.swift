import CacheEngine
import HTTPTypes
import Hummingbird
import HummingbirdCache
import Logging
import NIOCore
import Synchronization
import Testing

/// The routes of a router are the origin of a cache.
@Suite(.timeLimit(.minutes(1))) struct ResponderOriginTests {
    private func origin(_ router: Router<Context>) -> some Origin {
        ResponderOrigin(router.buildResponder()) { Context(source: Context.Source()) }
    }

    @Test func aRouteRunsOnceForTwoRequests() async throws {
        let calls = Atomic(0)
        let router = Router(context: Context.self)
        router.get("news") { request, _ in
            calls.add(1, ordering: .relaxed)
            #expect(request.uri.path == "/news" && request.uri.query == "a=b")
            #expect(request.head.authority == "routes.test")
            return Response(
                status: .ok,
                headers: [.cacheControl: "max-age=60"],
                body: ResponseBody(byteBuffer: ByteBuffer(string: "nothing new"))
            )
        }
        let cache = try await HTTPCache(origin: origin(router))
        for source: CacheInfo.Source in [.origin, .fresh] {
            let response = try await cache.respond(
                to: CacheRequest(url: "http://routes.test/news?a=b")
            )
            #expect(response.status == 200 && response.info.source == source)
            #expect(try await response.body.collect() == ByteChunk("nothing new"))
        }
        await cache.shutDown()
        #expect(calls.load(ordering: .relaxed) == 1)
    }

    @Test func fieldsAndContentReachTheRoute() async throws {
        let router = Router(context: Context.self)
        router.post("echo") { request, _ in
            #expect(request.headers[.accept] == "text/plain")
            let content = try await request.body.collect(upTo: 100)
            return Response(status: .created, body: ResponseBody(byteBuffer: content))
        }
        let response = try await origin(router).fetch(
            OriginRequest(
                method: .post,
                url: "http://routes.test/echo",
                fields: ["Accept": "text/plain"],
                body: BodyStream(ByteChunk("content"))
            )
        )
        #expect(response.status == 201)
        #expect(try await response.body.collect() == ByteChunk("content"))
    }

    @Test func anErrorOfARouteIsItsResponse() async throws {
        let router = Router(context: Context.self)
        router.get("gone") { _, _ -> Response in throw HTTPError(.gone) }
        let gone = try await origin(router).fetch(OriginRequest(url: "http://routes.test/gone"))
        #expect(gone.status == 410)
        let missing = try await origin(router).fetch(OriginRequest(url: "http://routes.test"))
        #expect(missing.status == 404)
    }

    @Test func aBodyIsReadWhileItIsWritten() async throws {
        let (permission, permit) = AsyncStream.makeStream(of: Void.self)
        let router = Router(context: Context.self)
        router.get("slow") { _, _ in
            Response(
                status: .ok,
                body: ResponseBody { writer in
                    try await writer.write(ByteBuffer(string: "a"))
                    for await _ in permission {}
                    try await writer.write(ByteBuffer(string: "b"))
                    try await writer.finish(nil)
                }
            )
        }
        let response = try await origin(router).fetch(OriginRequest(url: "http://routes.test/slow"))
        var pieces = response.body.makeAsyncIterator()
        #expect(try await pieces.next() == ByteChunk("a"))
        permit.finish()
        #expect(try await pieces.next() == ByteChunk("b"))
        #expect(try await pieces.next() == nil)
    }

    @Test func aBodyThatBreaksOffThrows() async throws {
        let router = Router(context: Context.self)
        router.get("broken") { _, _ in
            Response(
                status: .ok,
                body: ResponseBody { writer in
                    try await writer.write(ByteBuffer(string: "a"))
                    throw CacheError(.bodyTruncated, detail: "broken off")
                }
            )
        }
        let response = try await origin(router)
            .fetch(OriginRequest(url: "http://routes.test/broken"))
        let error = await #expect(throws: CacheError.self) { try await response.body.collect() }
        #expect(error?.code == .bodyTruncated)
    }

    @Test func aDroppedBodyEndsItsWriter() async throws {
        let ended = AsyncStream.makeStream(of: Void.self)
        let router = Router(context: Context.self)
        router.get("endless") { _, _ in
            Response(
                status: .ok,
                body: ResponseBody { writer in
                    defer { ended.continuation.finish() }
                    while true { try await writer.write(ByteBuffer(string: "a")) }
                }
            )
        }
        do {
            let response = try await origin(router)
                .fetch(OriginRequest(url: "http://routes.test/endless"))
            var pieces = response.body.makeAsyncIterator()
            #expect(try await pieces.next() == ByteChunk("a"))
        }
        for await _ in ended.stream {}
    }

    @Test func aRelativeURLIsRefused() async throws {
        let error = await #expect(throws: CacheError.self) {
            try await origin(Router(context: Context.self)).fetch(OriginRequest(url: "/a"))
        }
        #expect(error?.code == .requestInvalid)
    }
}

/// The context of routes that a cache calls; it belongs to no connection.
private struct Context: RequestContext {
    struct Source: RequestContextSource {
        let logger = Logger(label: "routes")
    }

    var coreContext: CoreRequestContextStorage

    init(source: Source) { coreContext = CoreRequestContextStorage(source: source) }
}
