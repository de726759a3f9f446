import CacheEngine
import CacheTestSupport
import NIOCore
import NIOHTTP1
import Testing
import Vapor
import VaporCache
import VaporTesting

/// A Vapor application in front of an origin answers as a cache must.
@Suite(.timeLimit(.minutes(1))) struct CacheMiddlewareTests {
    /// Runs `body` with an application whose cache asks `origin`.
    private func withGateway(
        _ origin: some Origin,
        contentBytesMax: Int = 1_000,
        _ body: (any TestingApplicationTester, HTTPCache) async throws -> Void
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
            let server = try application.testing(method: .running(hostname: "127.0.0.1", port: 0))
            try await body(server, cache)
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
