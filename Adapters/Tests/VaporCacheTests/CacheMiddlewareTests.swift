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
        _ body: (any TestingApplicationTester, HTTPCache) async throws -> Void
    ) async throws {
        try await withApplication(origin, contentBytesMax: contentBytesMax) { application, cache in
            let server = try application.testing(method: .running(hostname: "127.0.0.1", port: 0))
            try await body(server, cache)
        }
    }

    /// Runs `body` with an application whose cache asks `origin`.
    private func withApplication(
        _ origin: some Origin,
        contentBytesMax: Int = 1_000,
        _ body: (Application, HTTPCache) async throws -> Void
    ) async throws {
        let cache = try await HTTPCache(origin: origin)
        try await withApp { application in
            let gateway = application.grouped(
                CacheMiddleware(
                    cache: cache,
                    upstream: "http://origin.test",
                    name: "gate",
                    contentBytesMax: contentBytesMax
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
        let middleware = CacheMiddleware(cache: cache, upstream: "http://origin.test")
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

    @Test func aFailureOfTheOriginIsA502() async throws {
        let origin = ScriptedOrigin()
        origin.cutOff()
        try await withGateway(origin) { client, _ in
            let response = try await client.sendRequest(.GET, "/a")
            #expect(response.status == .badGateway)
        }
    }
}
