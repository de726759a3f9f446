import CacheEngine
import CacheTestSupport
import NIOCore
import NIOHTTP1
import NIOPosix
import Testing
import Vapor
import VaporCache
import VaporTesting

/// A Vapor application in front of an origin answers as a cache must.
@Suite(.timeLimit(.minutes(1))) struct CacheMiddlewareTests {
    /// Runs `body` with a client of an application whose cache asks `origin`.
    private func withGateway(
        _ origin: some Origin,
        contentBytesMax: Int = 1_000,
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(),
        upstream: String = "http://origin.test",
        showsTags: Bool = false,
        prepare: @escaping CacheMiddleware.Preparation = { _, _ in },
        _ body: (any TestingApplicationTester, HTTPCache) async throws -> Void
    ) async throws {
        try await withApplication(
            origin,
            contentBytesMax: contentBytesMax,
            configuration: configuration,
            upstream: upstream,
            showsTags: showsTags,
            prepare: prepare
        ) { application, cache in
            let server = try application.testing(method: .running(hostname: "127.0.0.1", port: 0))
            try await body(server, cache)
        }
    }

    /// Runs `body` with an application whose cache asks `origin`.
    private func withApplication(
        _ origin: some Origin,
        contentBytesMax: Int = 1_000,
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(),
        upstream: String = "http://origin.test",
        showsTags: Bool = false,
        prepare: @escaping CacheMiddleware.Preparation = { _, _ in },
        _ body: (Application, HTTPCache) async throws -> Void
    ) async throws {
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        try await withApp { application in
            let gateway = application.grouped(
                try CacheMiddleware(
                    cache: cache,
                    upstream: upstream,
                    name: "gate",
                    contentBytesMax: contentBytesMax,
                    showsTags: showsTags,
                    prepare: prepare
                )
            )
            for method: NIOHTTP1.HTTPMethod in [.GET, .POST] {
                gateway.on(method, "**", body: .stream) { _ in "the route" }
            }
            try await body(application, cache)
        }
        await cache.shutDown()
    }

    @Test func aMissIsFetchedAndThenAHit() async throws {
        let origin = ScriptedOrigin(body: "hello")
        try await withGateway(origin) { client, _ in
            for isHit in [false, true] {
                let response = try await client.sendRequest(.GET, "/a?b=c")
                #expect(response.status == .ok && String(buffer: response.body) == "hello")
                #expect((response.headers.first(name: "Age") != nil) == isHit)
                let status = try #require(response.headers.first(name: "Cache-Status"))
                #expect(status.contains("hit") == isHit, "\(status)")
            }
        }
        #expect(origin.requests.map(\.url) == ["http://origin.test/a?b=c"])
    }

    @Test func theOriginIsAskedUnderItsOwnName() async throws {
        let origin = ScriptedOrigin()
        try await withGateway(origin) { client, _ in
            _ = try await client.sendRequest(
                .GET,
                "/a",
                headers: ["Accept": "text/plain", "Connection": "X-Hop", "X-Hop": "1"]
            )
        }
        let fields = try #require(origin.requests.first).fields
        #expect(fields["Accept"] == "text/plain" && fields["Via"] == "1.1 gate")
        #expect(fields["Host"] == nil && fields["X-Hop"] == nil)
    }

    @Test func conditionsAndRangesAreAnsweredFromTheStore() async throws {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "ETag": "\"a\""],
            body: "hello"
        )
        try await withGateway(origin) { client, _ in
            _ = try await client.sendRequest(.GET, "/a")
            let unchanged = try await client.sendRequest(
                .GET,
                "/a",
                headers: ["If-None-Match": "\"a\""]
            )
            #expect(unchanged.status == .notModified && unchanged.body.readableBytes == 0)
            let part = try await client.sendRequest(.GET, "/a", headers: ["Range": "bytes=1-3"])
            #expect(part.status == .partialContent && String(buffer: part.body) == "ell")
            #expect(part.headers.first(name: "Content-Range") == "bytes 1-3/5")
        }
        #expect(origin.count == 1)
    }

    @Test func aStreamedBodyArrivesWhole() async throws {
        let origin = ScriptedOrigin { _, _ in
            let pieces = AsyncStream { sender in
                for text in ["ab", "cd", "ef"] { sender.yield(ByteChunk(text)) }
                sender.finish()
            }
            return OriginResponse(status: 200, body: BodyStream(pieces))
        }
        try await withGateway(origin) { client, _ in
            let response = try await client.sendRequest(.GET, "/a")
            #expect(String(buffer: response.body) == "abcdef")
        }
    }

    @Test func contentPassesToTheOrigin() async throws {
        let received = AsyncStream.makeStream(of: ByteChunk.self)
        let origin = ScriptedOrigin { request, _ in
            if let body = request.body {
                received.continuation.yield(try await body.collect())
            }
            return .whole(status: 201)
        }
        try await withGateway(origin) { client, _ in
            let response = try await client.sendRequest(
                .POST,
                "/a",
                body: ByteBuffer(string: "content")
            )
            #expect(response.status == .created)
        }
        received.continuation.finish()
        #expect(await received.stream.reduce(into: []) { $0.append($1) } == [ByteChunk("content")])
    }

    /// Bytes after the head would be the beginning of the next response.
    @Test func aResponseToHEADEndsWithItsHead() async throws {
        let origin = ScriptedOrigin { request, _ in
            request.method == .head ? OriginResponse(status: 200) : .whole(body: "hello")
        }
        try await withApplication(origin) { application, _ in
            try await application.server.start(address: .hostname("127.0.0.1", port: 0))
            let port = try #require(application.http.server.shared.localAddress?.port)
            let answers = try await answers(
                to: [
                    "HEAD /a HTTP/1.1\r\nHost: a\r\n\r\n",
                    "GET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                ],
                port: port
            )
            await application.server.shutdown()
            let end = try #require(answers.firstRange(of: "\r\n\r\n"))
            #expect(answers[..<end.lowerBound].lowercased().contains("connection: keep-alive"))
            #expect(answers[end.upperBound...].hasPrefix("HTTP/1.1 200 "), "\(answers)")
            #expect(answers.hasSuffix("\r\n\r\nhello"))
        }
    }

    /// All bytes that a server sends for requests on one connection, which the last of them ends.
    ///
    /// The second request is sent when the head of the first response has arrived.
    private func answers(to requests: [String], port: Int) async throws -> String {
        let connection = try await ClientBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .connect(host: "127.0.0.1", port: port) { channel in
                channel.eventLoop.makeCompletedFuture {
                    try NIOAsyncChannel<ByteBuffer, ByteBuffer>(
                        wrappingChannelSynchronously: channel
                    )
                }
            }
        return try await connection.executeThenClose { inbound, outbound in
            var pieces = inbound.makeAsyncIterator()
            var bytes = ""
            for request in requests {
                try await outbound.write(ByteBuffer(string: request))
                while let piece = try await pieces.next() {
                    bytes += String(buffer: piece)
                    if request != requests.last, bytes.contains("\r\n\r\n") { break }
                }
            }
            return bytes
        }
    }

    /// Such content ends like a whole one when its connection closes.
    @Test(
        arguments: [
            (.POST, ["Transfer-Encoding": "chunked"], .lengthRequired),
            (.POST, ["Content-Length": "5", "Content-Encoding": "gzip"], .unsupportedMediaType),
            (.POST, ["Content-Length": "0"], .ok), (.GET, [:], .ok),
        ] as [(NIOHTTP1.HTTPMethod, HTTPHeaders, HTTPResponseStatus)]
    )
    func contentOverHTTP2NeedsALength(
        method: NIOHTTP1.HTTPMethod,
        headers: HTTPHeaders,
        status: HTTPResponseStatus
    ) async throws {
        let origin = ScriptedOrigin()
        let cache = try await HTTPCache(origin: origin)
        let middleware = try CacheMiddleware(cache: cache, upstream: "http://origin.test")
        try await withApp { application in
            let request = Request(
                application: application,
                method: method,
                url: "/a",
                version: HTTPVersion(major: 2, minor: 0),
                headers: headers,
                on: application.eventLoopGroup.any()
            )
            let routes = AsyncBasicResponder { _ in throw Abort(.notFound) }
            let answered: HTTPResponseStatus
            do {
                answered = try await middleware.respond(to: request, chainingTo: routes).status
            } catch let error as Abort {
                answered = error.status
            }
            #expect(answered == status)
        }
        await cache.shutDown()
        #expect(origin.count == (status == .ok ? 1 : 0))
    }

    /// Vapor decodes the content, so it must not pass for encoded.
    @Test(arguments: ["gzip", "GZIP", "identity"])
    func decodedContentHasNoCoding(coding: String) async throws {
        let origin = ScriptedOrigin { request, _ in
            let content = try await request.body?.collect() ?? .empty
            let facts = [
                request.fields["Content-Encoding"] ?? "none",
                request.body?.count.map(String.init) ?? "unknown", content.text,
            ]
            return .whole(body: facts.joined(separator: " "))
        }
        let isGzip = coding.lowercased() == "gzip"
        let content = isGzip ? Self.gzipOfHello : [UInt8]("hello".utf8)
        try await withGateway(origin) { client, _ in
            let response = try await client.sendRequest(
                .POST,
                "/a",
                headers: ["Content-Encoding": coding],
                body: ByteBuffer(bytes: content)
            )
            let expected = isGzip ? "none unknown hello" : "identity 5 hello"
            #expect(String(buffer: response.body) == expected)
        }
    }

    /// The output of `printf hello | gzip -n`.
    private static let gzipOfHello: [UInt8] = [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x03, 0xCB, 0x48, 0xCD, 0xC9,
        0xC9, 0x07, 0x00, 0x86, 0xA6, 0x10, 0x36, 0x05, 0x00, 0x00, 0x00,
    ]

    @Test func contentOverTheLimitIsRefused() async throws {
        let origin = ScriptedOrigin()
        try await withGateway(origin, contentBytesMax: 3) { client, _ in
            let response = try await client.sendRequest(
                .POST,
                "/a",
                body: ByteBuffer(string: "long")
            )
            #expect(response.status == .payloadTooLarge)
        }
        #expect(origin.count == 0)
    }

    /// Clients learn the kind of the failure, not the address behind the server.
    @Test(
        arguments: [
            (.originUnreachable, .badGateway), (.originFailed, .badGateway),
            (.originTimedOut, .gatewayTimeout), (.requestInvalid, .badRequest),
        ] as [(CacheError.Code, HTTPResponseStatus)]
    )
    func aFailureOfTheOriginHasAFixedText(
        code: CacheError.Code,
        status: HTTPResponseStatus
    ) async throws {
        let origin = ScriptedOrigin { _, _ in
            throw CacheError(code, detail: "No connection to 10.9.8.7:4321: errno 111")
        }
        try await withGateway(origin, upstream: "http://10.9.8.7:4321") { client, _ in
            let response = try await client.sendRequest(.GET, "/a")
            #expect(response.status == status)
            let text = String(buffer: response.body)
            #expect(text.contains("\"\(code)\""), "\(text)")
            for secret in ["10.9.8.7", "4321", "errno"] { #expect(!text.contains(secret)) }
        }
    }

    @Test func aSlashAfterTheUpstreamIsDropped() async throws {
        let origin = ScriptedOrigin()
        try await withGateway(origin, upstream: "http://origin.test/") { client, _ in
            _ = try await client.sendRequest(.GET, "/a")
        }
        #expect(origin.requests.map(\.url) == ["http://origin.test/a"])
    }

    @Test func anUpstreamWithoutASchemeIsRefused() async throws {
        let cache = try await HTTPCache(origin: ScriptedOrigin())
        let error = #expect(throws: CacheError.self) {
            try CacheMiddleware(cache: cache, upstream: "127.0.0.1:3000")
        }
        #expect(error?.code == .configurationInvalid)
        await cache.shutDown()
    }

    @Test(arguments: [false, true])
    func tagsAreForCaches(showsTags: Bool) async throws {
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=60", "Cache-Tag": "a", "X-Tag": "b", "X-Other": "c"]
        )
        var configuration = HTTPCache.Configuration()
        configuration.caching.tagFields = ["Cache-Tag", "X-Tag"]
        try await withGateway(
            origin,
            configuration: configuration,
            showsTags: showsTags
        ) { client, _ in
            // A miss, then a hit.
            for _ in 0..<2 {
                let headers = try await client.sendRequest(.GET, "/a").headers
                #expect(headers.contains(name: "Cache-Tag") == showsTags)
                #expect(headers.contains(name: "X-Tag") == showsTags)
                #expect(headers.contains(name: "X-Other"))
            }
        }
    }

    /// The entries of the users are apart, and the origin gets what the application adds.
    @Test func aRequestIsPrepared() async throws {
        let origin = ScriptedOrigin()
        try await withGateway(
            origin,
            prepare: { question, request in
                #expect(question.url == "http://origin.test/a")
                guard let user = request.headers.first(name: .authorization) else {
                    throw Abort(.unauthorized)
                }
                question.options.partition = user
                question.fields.remove("Authorization")
                question.fields["X-Forwarded-For"] = request.remoteAddress?.ipAddress
            },
            { client, _ in
                for user in ["ann", "bob", "ann"] {
                    let headers: HTTPHeaders = ["Authorization": user]
                    let response = try await client.sendRequest(.GET, "/a", headers: headers)
                    #expect(response.status == .ok)
                }
                let refused = try await client.sendRequest(.GET, "/a")
                #expect(refused.status == .unauthorized)
            }
        )
        #expect(origin.count == 2)
        for request in origin.requests {
            #expect(request.fields["X-Forwarded-For"] == "127.0.0.1")
            #expect(request.fields["Authorization"] == nil)
        }
    }

    /// Vapor drops the error of the first piece, and then passes the content on as empty.
    @Test func contentThatCannotBeDecodedIsNotEmpty() async throws {
        let (contents, content) = AsyncStream.makeStream(of: String.self)
        let origin = ScriptedOrigin { request, _ in
            do {
                let chunk = try await request.body?.collect() ?? .empty
                content.yield("whole: \(chunk.text)")
            } catch {
                content.yield("cut")
                throw error
            }
            return .whole()
        }
        try await withApplication(origin) { application, _ in
            try await application.server.start(address: .hostname("127.0.0.1", port: 0))
            let port = try #require(application.http.server.shared.localAddress?.port)
            let head = "POST /a HTTP/1.1\r\nHost: a\r\nContent-Encoding: gzip\r\n"
            let request = head + "Content-Length: 7\r\n\r\nno gzip"
            // The server closes the connection, perhaps before the origin is asked.
            _ = try? await answers(to: [request], port: port)
            for await outcome in contents {
                #expect(outcome == "cut")
                break
            }
            await application.server.shutdown()
        }
    }

    /// The client did not break its content off.
    @Test func anOriginThatReadsNoFurtherIsNoBadRequest() async throws {
        let origin = ScriptedOrigin { request, _ in
            let body = try #require(request.body)
            let (began, reading) = AsyncStream.makeStream(of: Void.self)
            // A client with a task of its own for the content, as AsyncHTTPClient has.
            let upload = Task {
                for try await _ in body { reading.yield() }
            }
            for await _ in began { break }
            upload.cancel()
            _ = await upload.result
            throw CacheError(.originTimedOut, detail: "no response")
        }
        try await withApplication(origin) { application, _ in
            try await application.server.start(address: .hostname("127.0.0.1", port: 0))
            let port = try #require(application.http.server.shared.localAddress?.port)
            let head = "POST /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n"
            let request = head + "Content-Length: 10\r\n\r\nabc"
            let answer = try await answers(to: [request], port: port)
            #expect(answer.hasPrefix("HTTP/1.1 504 "), "\(answer)")
            await application.server.shutdown()
        }
    }

    /// Content that was decoded to nothing is whole.
    @Test func anEmptyGzipIsEmptyContent() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(body: "\(try await request.body?.collect().count ?? -1) bytes")
        }
        // The output of `gzip -n < /dev/null`.
        let gzip: [UInt8] = [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0]
        try await withGateway(origin) { client, _ in
            let response = try await client.sendRequest(
                .POST,
                "/a",
                headers: ["Content-Encoding": "gzip"],
                body: ByteBuffer(bytes: gzip)
            )
            #expect(String(buffer: response.body) == "0 bytes")
        }
    }

    @Test func contentThatCannotBeDecodedIsABadRequest() async throws {
        let origin = ScriptedOrigin { request, _ in
            _ = try await request.body?.collect()
            return .whole()
        }
        let cache = try await HTTPCache(origin: origin)
        let middleware = try CacheMiddleware(cache: cache, upstream: "http://origin.test")
        try await withApp { application in
            // Vapor's request after an error of its decoder.
            let request = Request(
                application: application,
                method: .POST,
                url: "/a",
                headers: ["Content-Length": "7", "Content-Encoding": "gzip"],
                on: application.eventLoopGroup.any()
            )
            let routes = AsyncBasicResponder { _ in throw Abort(.notFound) }
            let error = await #expect(throws: Abort.self) {
                try await middleware.respond(to: request, chainingTo: routes)
            }
            #expect(error?.status == .badRequest)
        }
        await cache.shutDown()
    }
}
