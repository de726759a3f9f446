import CacheEngine
import CacheTestSupport
import HTTPTypes
import Hummingbird
import HummingbirdCache
import HummingbirdTesting
import Logging
import NIOCore
import NIOPosix
import Testing

/// A Hummingbird server in front of an origin answers as a cache must.
@Suite(.timeLimit(.minutes(1))) struct CacheMiddlewareTests {
    /// Runs `body` with a client of a server whose cache asks `origin`.
    private func withServer(
        _ origin: some Origin,
        contentBytesMax: Int = 1_000,
        setup: TestingSetup = .live,
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(),
        upstream: String = "http://origin.test",
        showsTags: Bool = false,
        prepare: @escaping CacheMiddleware<BasicRequestContext>.Preparation = { _, _, _ in },
        _ body: @escaping @Sendable (any TestClientProtocol) async throws -> Void
    ) async throws {
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let router = Router(options: .autoGenerateHeadEndpoints)
        router.add(
            middleware: try CacheMiddleware(
                cache: cache,
                upstream: upstream,
                name: "gate",
                contentBytesMax: contentBytesMax,
                showsTags: showsTags,
                prepare: prepare
            )
        )
        router.get("behind") { _, _ in "the route" }
        try await Application(router: router).test(setup) { try await body($0) }
        await cache.shutDown()
    }

    @Test func aMissIsFetchedAndThenAHit() async throws {
        let origin = ScriptedOrigin(body: "hello")
        try await withServer(origin) { client in
            for isHit in [false, true] {
                let response = try await client.execute(uri: "/a?b=c", method: .get)
                #expect(response.status == .ok && String(buffer: response.body) == "hello")
                #expect((response.headers[.age] != nil) == isHit)
                let status = try #require(response.headers[.cacheStatus])
                #expect(status.contains("hit") == isHit, "\(status)")
            }
        }
        #expect(origin.requests.map(\.url) == ["http://origin.test/a?b=c"])
    }

    @Test func theOriginIsAskedUnderItsOwnName() async throws {
        let origin = ScriptedOrigin()
        try await withServer(origin) { client in
            _ = try await client.execute(
                uri: "/",
                method: .get,
                headers: [.accept: "text/plain", .te: "trailers"]
            )
        }
        let fields = try #require(origin.requests.first).fields
        #expect(fields["Accept"] == "text/plain" && fields["Via"] == "1.1 gate")
        #expect(fields["Host"] == nil)
        #expect(fields["TE"] == nil)
        #expect(fields["Connection"] == nil)
    }

    @Test func conditionsAndRangesAreAnsweredFromTheStore() async throws {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "ETag": "\"a\""],
            body: "hello"
        )
        try await withServer(origin) { client in
            _ = try await client.execute(uri: "/", method: .get)
            let unchanged = try await client.execute(
                uri: "/",
                method: .get,
                headers: [.ifNoneMatch: "\"a\""]
            )
            #expect(unchanged.status == .notModified && unchanged.body.readableBytes == 0)
            let part = try await client.execute(
                uri: "/",
                method: .get,
                headers: [.range: "bytes=1-3"]
            )
            #expect(part.status == .partialContent && String(buffer: part.body) == "ell")
            #expect(part.headers[.contentRange] == "bytes 1-3/5")
            let head = try await client.execute(uri: "/", method: .head)
            #expect(head.status == .ok && head.body.readableBytes == 0)
            #expect(head.headers[.contentLength] == "5")
        }
        #expect(origin.count == 1)
    }

    /// The URL is the upstream and the client's target; a partition is named by its request.
    @Test(arguments: [
        ("", PurgeTarget.request(CacheRequest(url: "http://origin.test/a?b=c"))),
        (
            "ann",
            .request(
                CacheRequest(
                    url: "http://origin.test/a?b=c",
                    options: RequestOptions(partition: "ann")
                )
            )
        ),
        ("ann", .tag("front")), ("", .everything),
    ])
    func whatWasAnsweredIsPurged(partition: String, target: PurgeTarget) async throws {
        for isSoft in [false, true] {
            let origin = ScriptedOrigin(
                fields: ["Cache-Control": "max-age=60", "Cache-Tag": "front"]
            )
            let cache = try await HTTPCache(origin: origin)
            let router = Router()
            router.add(
                middleware: try CacheMiddleware(
                    cache: cache,
                    upstream: "http://origin.test/",
                    prepare: { question, _, _ in question.options.partition = partition }
                )
            )
            try await Application(router: router).test(.router) { client in
                _ = try await client.execute(uri: "/a?b=c", method: .get)
                _ = try await client.execute(uri: "/a?b=c", method: .get)
                #expect(origin.count == 1)
                _ = try await cache.purge(target, isSoft: isSoft)
                #expect(await cache.statistics.memory.entries == (isSoft ? 1 : 0))
                _ = try await client.execute(uri: "/a?b=c", method: .get)
                #expect(origin.count == 2)
            }
            await cache.shutDown()
        }
    }

    @Test func twentyMissesOfOneKeyAreOneRequest() async throws {
        let (permission, permit) = AsyncStream.makeStream(of: Void.self)
        let origin = ScriptedOrigin { _, number in
            if number == 1 { for await _ in permission {} }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        let (arrivals, arrival) = AsyncStream.makeStream(of: Void.self)
        var configuration = HTTPCache.Configuration()
        configuration.hooks.collapsing = { _ in
            arrival.yield()
            return .shared
        }
        // The client of a live server has one connection, on which requests follow one another.
        try await withServer(origin, setup: .router, configuration: configuration) { client in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<20 {
                    group.addTask {
                        try await client.execute(uri: "/", method: .get) {
                            String(buffer: $0.body)
                        }
                    }
                }
                var requests = arrivals.makeAsyncIterator()
                for _ in 0..<20 { await requests.next() }
                permit.finish()
                for try await body in group { #expect(body == "hello") }
            }
        }
        #expect(origin.count == 1)
    }

    @Test func contentPassesToTheOrigin() async throws {
        let received = AsyncStream.makeStream(of: ByteChunk.self)
        let origin = ScriptedOrigin { request, _ in
            if let body = request.body {
                received.continuation.yield(try await body.collect())
            }
            return .whole(status: 201)
        }
        try await withServer(origin) { client in
            let response = try await client.execute(
                uri: "/",
                method: .post,
                body: ByteBuffer(string: "content")
            )
            #expect(response.status == .created)
        }
        received.continuation.finish()
        #expect(await received.stream.reduce(into: []) { $0.append($1) } == [ByteChunk("content")])
    }

    /// The server reads the rest of the content, which the origin is still about to read.
    @Test(arguments: [true, false])
    func anOriginThatStillReadsTheContentEndsNoServer(isAnswered: Bool) async throws {
        let origin = ScriptedOrigin { request, number in
            guard number == 1, let content = request.body else { return .whole(body: "alive") }
            let (began, reading) = AsyncStream.makeStream(of: Void.self)
            // A client with a task of its own for the content, as AsyncHTTPClient has.
            Task {
                for try await _ in content { reading.yield() }
            }
            // The read after the first piece is under way, or begins soon.
            for await _ in began { break }
            guard isAnswered else { throw CacheError(.originTimedOut, detail: "no response") }
            return .whole(status: 401)
        }
        try await withServer(origin) { client in
            let port = try #require(client.port)
            let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
                .connect(host: "127.0.0.1", port: port) { channel in
                    channel.eventLoop.makeCompletedFuture {
                        try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                            wrappingChannelSynchronously: channel
                        )
                    }
                }
            let head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nabc"
            let answer = try await connection.executeThenClose { inbound, outbound in
                try await outbound.write(ByteBuffer(string: head))
                // The server closes the connection, because the content has not ended.
                return try await inbound.reduce(into: "") { $0 += String(buffer: $1) }
            }
            #expect(answer.hasPrefix(isAnswered ? "HTTP/1.1 401 " : "HTTP/1.1 504 "))
            let next = try await client.execute(uri: "/b", method: .get)
            #expect(String(buffer: next.body) == "alive")
        }
    }

    @Test func contentOverTheLimitIsRefused() async throws {
        let origin = ScriptedOrigin()
        try await withServer(origin, contentBytesMax: 3) { client in
            let response = try await client.execute(
                uri: "/",
                method: .post,
                body: ByteBuffer(string: "long")
            )
            #expect(response.status == .contentTooLarge)
        }
        #expect(origin.count == 0)
    }

    /// Only HTTP/2 has such content, which ends like a whole one when its connection closes.
    @Test(
        arguments: [
            (.post, "content", .lengthRequired), (.delete, "content", .lengthRequired),
            (.post, "", .ok), (.get, "", .ok),
        ] as [(HTTPRequest.Method, String, HTTPResponse.Status)]
    )
    func contentOverHTTP2NeedsALength(
        method: HTTPRequest.Method,
        content: String,
        status: HTTPResponse.Status
    ) async throws {
        let origin = ScriptedOrigin()
        let cache = try await HTTPCache(origin: origin)
        let middleware = try CacheMiddleware<Context>(cache: cache, upstream: "http://origin.test")
        let request = Request(
            head: HTTPRequest(method: method, scheme: "https", authority: "a.test", path: "/a"),
            body: RequestBody(buffer: ByteBuffer(string: content))
        )
        let context = Context(source: Context.Source())
        let answered: HTTPResponse.Status
        do {
            let response = try await middleware.handle(request, context: context) { _, _ in
                Response(status: .notFound)
            }
            answered = response.status
        } catch let error as HTTPError {
            answered = error.status
        }
        await cache.shutDown()
        #expect(answered == status)
        #expect(origin.count == (status == .ok ? 1 : 0))
        #expect(origin.requests.allSatisfy { $0.body == nil })
    }

    /// Clients learn the kind of the failure, not the address behind the server.
    @Test(
        arguments: [
            (.originUnreachable, .badGateway), (.originFailed, .badGateway),
            (.originTimedOut, .gatewayTimeout), (.requestInvalid, .badRequest),
        ] as [(CacheError.Code, HTTPResponse.Status)]
    )
    func aFailureOfTheOriginHasAFixedText(
        code: CacheError.Code,
        status: HTTPResponse.Status
    ) async throws {
        let origin = ScriptedOrigin { _, _ in
            throw CacheError(code, detail: "No connection to 10.9.8.7:4321: errno 111")
        }
        try await withServer(origin, upstream: "http://10.9.8.7:4321") { client in
            let response = try await client.execute(uri: "/", method: .get)
            #expect(response.status == status)
            let text = String(buffer: response.body)
            #expect(text.contains("\"\(code)\""), "\(text)")
            for secret in ["10.9.8.7", "4321", "errno"] { #expect(!text.contains(secret)) }
        }
    }

    @Test func aSlashAfterTheUpstreamIsDropped() async throws {
        let origin = ScriptedOrigin()
        try await withServer(origin, upstream: "http://origin.test/") { client in
            _ = try await client.execute(uri: "/a", method: .get)
        }
        #expect(origin.requests.map(\.url) == ["http://origin.test/a"])
    }

    @Test func anUpstreamWithoutASchemeIsRefused() async throws {
        let error = await #expect(throws: CacheError.self) {
            try await withServer(ScriptedOrigin(), upstream: "127.0.0.1:3000") { _ in }
        }
        #expect(error?.code == .configurationInvalid)
    }

    @Test(arguments: [false, true])
    func tagsAreForCaches(showsTags: Bool) async throws {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "Cache-Tag": "a", "X-Tag": "b", "X-Other": "c"]
        )
        var configuration = HTTPCache.Configuration()
        configuration.caching.tagFields = ["Cache-Tag", "X-Tag"]
        try await withServer(origin, configuration: configuration, showsTags: showsTags) { client in
            // A miss, a hit and a response to HEAD.
            for method: HTTPRequest.Method in [.get, .get, .head] {
                let response = try await client.execute(uri: "/", method: method)
                let names = Set(response.headers.map(\.name.canonicalName))
                #expect(names.contains("cache-tag") == showsTags)
                #expect(names.contains("x-tag") == showsTags)
                #expect(names.contains("x-other"))
            }
        }
    }

    /// The entries of the users are apart, and the origin gets what the application adds.
    @Test func aRequestIsPrepared() async throws {
        let origin = ScriptedOrigin()
        try await withServer(
            origin,
            prepare: { question, request, context in
                #expect(question.url == "http://origin.test/a" && context.parameters.isEmpty)
                guard let user = request.headers[.authorization] else {
                    throw HTTPError(.unauthorized)
                }
                question.options.partition = user
                question.fields.remove("Authorization")
                question.fields["X-Forwarded-For"] = "192.0.2.1"
            },
            { client in
                for user in ["ann", "bob", "ann"] {
                    let response = try await client.execute(
                        uri: "/a",
                        method: .get,
                        headers: [.authorization: user]
                    )
                    #expect(response.status == .ok)
                }
                let refused = try await client.execute(uri: "/a", method: .get)
                #expect(refused.status == .unauthorized)
            }
        )
        #expect(origin.count == 2)
        for request in origin.requests {
            #expect(request.fields["X-Forwarded-For"] == "192.0.2.1")
            #expect(request.fields["Authorization"] == nil)
        }
    }

    @Test func anUpgradeGoesToTheRoutesBehind() async throws {
        let origin = ScriptedOrigin()
        try await withServer(origin) { client in
            let response = try await client.execute(
                uri: "/behind",
                method: .get,
                headers: [.upgrade: "other"]
            )
            #expect(String(buffer: response.body) == "the route")
        }
        #expect(origin.count == 0)
    }

    @Test func aTargetWithAHostIsRefused() async throws {
        let origin = ScriptedOrigin()
        // The client of a live server would send the path alone.
        try await withServer(origin, setup: .router) { client in
            let response = try await client.execute(uri: "http://other.test/", method: .get)
            #expect(response.status.code >= 400)
        }
        #expect(origin.count == 0)
    }
}

/// The context of a request that arrived on no connection.
private struct Context: RequestContext {
    struct Source: RequestContextSource {
        let logger = Logger(label: "routes")
    }

    var coreContext: CoreRequestContextStorage

    init(source: Source) { coreContext = CoreRequestContextStorage(source: source) }
}

extension HTTPField.Name {
    fileprivate static var cacheStatus: Self { Self(parsed: "Cache-Status") }

    /// A name that is known to be valid.
    private init(parsed name: String) {
        guard let valid = Self(name) else { preconditionFailure("\(name) is no field name") }
        self = valid
    }
}
