import AsyncHTTPClient
import AsyncHTTPClientOrigin
import CacheEngine
import CacheTestSupport
import NIOCore
import NIOPosix
import Testing

/// The origin sends what the cache asks, and reports what a server on this machine answers.
@Suite(.timeLimit(.minutes(1))) struct AsyncHTTPClientOriginTests {
    /// Runs `body` with an origin, and closes its connections.
    private func withOrigin(
        _ origin: AsyncHTTPClientOrigin = AsyncHTTPClientOrigin(),
        _ body: (AsyncHTTPClientOrigin) async throws -> Void
    ) async throws {
        do {
            try await body(origin)
        } catch {
            try await origin.shutDown()
            throw error
        }
        try await origin.shutDown()
    }

    /// Returns after so many milliseconds, as the limits of a client are in real time.
    private func time(of milliseconds: Int64) async throws {
        let loop = MultiThreadedEventLoopGroup.singleton.any()
        try await loop.scheduleTask(in: .milliseconds(milliseconds)) {}.futureResult.get()
    }

    @Test func aMissIsFetchedAndThenAHit() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "hello")
        }
        try await withOrigin { origin in
            let cache = try await HTTPCache(origin: origin)
            let request = CacheRequest(url: server.baseURL + "/a")
            for source: CacheInfo.Source in [.origin, .fresh] {
                let response = try await cache.respond(to: request)
                #expect(response.status == 200 && response.info.source == source)
                #expect(try await response.body.collect() == ByteChunk("hello"))
            }
            await cache.shutDown()
        }
        #expect(server.requestCount == 1)
    }

    @Test func methodTargetFieldsAndContentReachTheServer() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(201) }
        try await withOrigin { origin in
            let pieces = AsyncStream { sender in
                for text in ["ab", "cd"] { sender.yield(ByteChunk(text)) }
                sender.finish()
            }
            for body in [BodyStream(ByteChunk("abcd")), BodyStream(pieces, count: 4)] {
                let response = try await origin.fetch(
                    OriginRequest(
                        method: .post,
                        url: server.baseURL + "/a?b=c",
                        fields: [
                            "X-Test": "1", "Connection": "close", "Proxy-Authorization": "x",
                        ],
                        body: body
                    )
                )
                #expect(response.status == 201)
                _ = try await response.body.collect()
            }
        }
        #expect(server.requests.count == 2)
        for request in server.requests {
            #expect(request.method == "POST" && request.target == "/a?b=c")
            #expect(request["X-Test"] == "1")
            #expect(request["Connection"] == nil && request["Proxy-Authorization"] == nil)
            #expect(request.body == [UInt8]("abcd".utf8))
        }
    }

    /// The origin may take what follows on the connection for requests of the same user.
    @Test(arguments: ["NTLM TlRMTVNTUAAB", "negotiate YII", "Kerberos YII", "Basic eDp5"])
    func aConnectionOfOneUserIsNotUsedAgain(credentials: String) async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "x") }
        let url = server.baseURL + "/"
        let login = OriginRequest(url: url, fields: ["Authorization": credentials])
        try await withOrigin { origin in
            for number in 1...2 {
                for request in [login, OriginRequest(url: url)] {
                    let response = try await origin.fetch(request)
                    #expect(try await response.body.collect() == ByteChunk("x"))
                }
                let isOfOneUser = !credentials.hasPrefix("Basic")
                #expect(server.connectionCount == (isOfOneUser ? number + 1 : 1))
            }
        }
    }

    @Test func slowBodiesHoldUpNoOtherRequest() async throws {
        let gate = LoopbackGate()
        defer { gate.open() }
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            gate.wait()
            connection.send("cd")
        }
        try await withOrigin { origin in
            var bodies: [BodyStream] = []
            // One more than AsyncHTTPClient's own default permits.
            for _ in 0..<9 {
                let request = OriginRequest(url: server.baseURL + "/", timeout: .seconds(20))
                bodies.append(try await origin.fetch(request).body)
            }
            gate.open()
            for body in bodies { #expect(try await body.collect() == ByteChunk("abcd")) }
        }
    }

    @Test func responsesWithoutContentKeepTheirFields() async throws {
        let server = try LoopbackServer { request, connection in
            if request.method == "HEAD" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n")
            } else {
                connection.respond(304, [("ETag", "\"a\"")])
            }
        }
        try await withOrigin { origin in
            let head = try await origin.fetch(
                OriginRequest(method: .head, url: server.baseURL + "/")
            )
            #expect(head.fields["Content-Length"] == "7" && head.body.count == 0)
            let unchanged = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            #expect(unchanged.status == 304 && unchanged.fields["ETag"] == "\"a\"")
            #expect(unchanged.body.count == 0)
        }
    }

    @Test func redirectsAndCodingsAreReturnedAsTheyAre() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(
                302,
                [("Location", "/elsewhere"), ("Content-Encoding", "gzip")],
                body: "not gzip"
            )
        }
        try await withOrigin { origin in
            let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            #expect(response.status == 302 && response.fields["Location"] == "/elsewhere")
            #expect(try await response.body.collect() == ByteChunk("not gzip"))
        }
        #expect(server.requestCount == 1)
    }

    @Test func theHeadComesBeforeTheEndOfTheBody() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nab")
            gate.wait()
            connection.send("cd")
        }
        try await withOrigin { origin in
            let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            var pieces = response.body.makeAsyncIterator()
            #expect(try await pieces.next() == ByteChunk("ab"))
            gate.open()
            #expect(try await pieces.next() == ByteChunk("cd"))
            #expect(try await pieces.next() == nil)
        }
    }

    @Test func aBodyThatBreaksOffThrows() async throws {
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
            connection.close()
        }
        try await withOrigin { origin in
            let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            let error = await #expect(throws: CacheError.self) {
                try await response.body.collect()
            }
            #expect(error?.code == .bodyTruncated)
        }
    }

    @Test func aDroppedBodyClosesItsConnection() async throws {
        let closed = AsyncStream.makeStream(of: Void.self)
        let server = try LoopbackServer { _, connection in
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
            connection.waitForClose()
            closed.continuation.finish()
        }
        try await withOrigin { origin in
            _ = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            for await _ in closed.stream {}
        }
        #expect(server.requestCount == 1)
    }

    @Test(arguments: ["127.0.0.1", "localhost"])
    func aServerThatIsGoneIsAFailure(host: String) async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        let url = "http://\(host):\(server.port)/"
        server.stop()
        let start = ContinuousClock.now
        try await withOrigin { origin in
            let error = await #expect(throws: CacheError.self) {
                try await origin.fetch(OriginRequest(url: url))
            }
            #expect(error?.code == .originUnreachable)
        }
        // A client that tried again would go on for the ten seconds that it may take to connect.
        #expect(ContinuousClock.now - start < .seconds(5))
    }

    @Test func aHandshakeThatFailsIsAFailure() async throws {
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandler(PlainTextAnswer())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(server.localAddress?.port)
        try await withOrigin { origin in
            let error = await #expect(throws: CacheError.self) {
                try await origin.fetch(OriginRequest(url: "https://127.0.0.1:\(port)/"))
            }
            #expect(error?.code == .originUnreachable)
        }
        try await server.close().get()
    }

    @Test func aHeadThatComesTooLateTimesOut() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            gate.wait()
            connection.respond()
        }
        try await withOrigin { origin in
            let error = await #expect(throws: CacheError.self) {
                try await origin.fetch(
                    OriginRequest(url: server.baseURL + "/", timeout: .milliseconds(1))
                )
            }
            #expect(error?.code == .originTimedOut)
            gate.open()
        }
    }

    /// The limit for the head begins anew with each piece of the content.
    @Test func anUploadMayTakeLongerThanTheLimitForTheHead() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(201) }
        let pieces = AsyncStream { sender in
            Task {
                for _ in 0..<8 {
                    try await time(of: 150)
                    sender.yield(ByteChunk("piece"))
                }
                sender.finish()
            }
        }
        try await withOrigin { origin in
            let response = try await origin.fetch(
                OriginRequest(
                    method: .post,
                    url: server.baseURL + "/",
                    body: BodyStream(pieces),
                    timeout: .milliseconds(700)
                )
            )
            #expect(response.status == 201)
        }
        #expect(server.requests.first?.body.count == 40)
    }

    /// The limit between two pieces of a body does not hold for the head.
    @Test func aHeadMayTakeLongerThanThePiecesOfABody() async throws {
        let gate = LoopbackGate()
        let server = try LoopbackServer { _, connection in
            gate.wait()
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")
            connection.waitForClose()
        }
        let hasty = AsyncHTTPClientOrigin(
            configuration: .init(timeout: .init(connect: .seconds(10), read: .milliseconds(200)))
        )
        try await withOrigin(hasty) { origin in
            let opening = Task {
                try await time(of: 600)
                gate.open()
            }
            let response = try await origin.fetch(
                OriginRequest(url: server.baseURL + "/", timeout: .seconds(30))
            )
            try await opening.value
            let error = await #expect(throws: CacheError.self) {
                try await response.body.collect()
            }
            #expect(error?.code == .originTimedOut)
        }
    }

    /// The limit between two pieces of a body does not hold before the first read.
    @Test func aBodyMayWaitForItsReader() async throws {
        let server = try LoopbackServer { _, connection in connection.respond(body: "hello") }
        let hasty = AsyncHTTPClientOrigin(
            configuration: .init(timeout: .init(connect: .seconds(10), read: .milliseconds(200)))
        )
        try await withOrigin(hasty) { origin in
            let response = try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            try await time(of: 600)
            #expect(try await response.body.collect() == ByteChunk("hello"))
        }
    }

    @Test(arguments: [
        "", "/relative", "no-scheme.test/a", "http://127.0.0.1:65536/", "http://[::1]:65536?a=/",
        "http://user@localhost:65536#a", "http://127.0.0.1:99999999999999999999",
    ])
    func anInvalidURLIsReported(url: String) async throws {
        try await withOrigin { origin in
            let error = await #expect(throws: CacheError.self) {
                try await origin.fetch(OriginRequest(url: url))
            }
            #expect(error?.code == .requestInvalid)
        }
    }

    @Test(arguments: ["user:65536@", ""])
    func numbersOutsideThePortAreNoPorts(user: String) async throws {
        let server = try LoopbackServer { _, connection in connection.respond(201) }
        let path = "/a:65536/http://b:65536?c:65536"
        try await withOrigin { origin in
            let response = try await origin.fetch(
                OriginRequest(url: "http://\(user)127.0.0.1:\(server.port)\(path)")
            )
            #expect(response.status == 201)
        }
        #expect(server.requests.map(\.target) == [path])
    }

    @Test func aCancelledTaskSendsNothing() async throws {
        let server = try LoopbackServer { _, connection in connection.respond() }
        try await withOrigin { origin in
            let task = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return try await origin.fetch(OriginRequest(url: server.baseURL + "/"))
            }
            await #expect(throws: CancellationError.self) { try await task.value }
        }
        #expect(server.requestCount == 0)
    }
}

/// A server's connection that answers the first bytes as if they were HTTP without TLS.
private final class PlainTextAnswer: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let answer = ByteBuffer(string: "HTTP/1.1 400 Bad Request\r\n\r\n")
        context.writeAndFlush(wrapOutboundOut(answer), promise: nil)
    }
}
