import CacheEngine
import CacheTestSupport
import Platform
import Synchronization
import Testing

@testable import CacheProxy

/// What one client reads or sends must not delay other clients for long.
@Suite(.serialized) struct TurnTests {
    /// A turn ends after the write that reaches its limit.
    static let turnBytesMax = Worker.turnBytesMax + Worker.sendBytesMax

    static let large = ByteChunk([UInt8](repeating: 7, count: 8 << 20))

    /// 40 clients request 8 MiB each; `reads` states whether they read it.
    static func flood(_ server: ProxyServer, reads: Bool) async throws -> [WireClient] {
        try await onThread {
            let clients = try (0..<40).map { number in
                let client = try WireClient(server.port)
                try client.socket.write("GET /\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
                return client
            }
            guard reads else { return clients }
            for client in clients {
                let response = try client.read(isHead: false)
                guard response.body.count == large.count, response.isComplete else {
                    throw WireFailure("\(response.body.count) bytes")
                }
            }
            return clients
        }
    }

    @Test(arguments: [true, false])
    func bytesOfATurnAreBounded(reads: Bool) async throws {
        let hot = ScriptedResponder.hot { _ in
            CacheResponse(status: 200, body: BodyStream(Self.large))
        }
        try await withServer(hot) { server in
            let clients = try await Self.flood(server, reads: reads)
            let counters = server.counters[0]
            #expect(await eventually { counters[.hits] == 40 })
            #expect(counters[.turnBytesMax] <= Self.turnBytesMax)
            #expect(counters[.turnBytesMax] > 0)
            withExtendedLifetime(clients) {}
        }
    }

    /// Two clients send long heads faster than the server reads them, and their responses are small.
    @Test func bytesReadInATurnAreBounded() async throws {
        let hot = ScriptedResponder.hot { _ in CacheResponse(status: 204) }
        let field = "X: \(String(repeating: "a", count: 15_000))\r\n"
        let request = "GET / HTTP/1.1\r\nHost: x\r\n\(field)\(field)\r\n"
        try await withServer(hot) { server in
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<2 {
                    group.addTask {
                        let client = try WireClient(server.port)
                        try await client.send(String(repeating: request, count: 64))
                        for _ in 0..<64 { #expect(try await client.response().status == 204) }
                    }
                }
                try await group.waitForAll()
            }
            let counters = server.counters[0]
            // One buffer of each client; responses of a few hundred bytes make up the rest.
            #expect(counters[.turnBytesMax] >= Worker.readBytes)
            #expect(counters[.turnBytesMax] <= 3 * Worker.readBytes)
        }
    }

    /// A large response in the middle of a pipeline does not change the order.
    @Test func pipelineOfLargeAndSmallAnswersKeepsItsOrder() async throws {
        let hot = ScriptedResponder.hot { request in
            request.url.hasSuffix("/large")
                ? CacheResponse(status: 200, body: BodyStream(Self.large)) : .text(request.url)
        }
        try await withServer(hot) { server in
            let client = try WireClient(server.port)
            let targets = (0..<12).map { $0 % 3 == 1 ? "large" : "\($0)" }
            let text = targets.map { "GET /\($0) HTTP/1.1\r\nHost: x\r\n\r\n" }.joined()
            try await client.send(text)
            for target in targets {
                let response = try await client.response()
                #expect(
                    target == "large"
                        ? response.body.count == Self.large.count
                        : response.text == "http://x/\(target)"
                )
            }
        }
    }

    /// A request may bring few bytes, ask for few, and still take long.
    ///
    /// The worker stops at its first two requests. Meanwhile the others come whole, so the speed of
    /// the machine does not decide which of them it finds.
    @Test func requestsOfATurnAreBoundedByTime() async throws {
        let order = Mutex<[String]>([])
        let stile = TurnStile()
        let responder = ScriptedResponder.hot { request in
            let number = order.withLock { order in
                order.append(request.url)
                return order.count
            }
            if number <= 2 { stile.wait() }
            let end = monotonicNanoseconds() + 200_000
            while monotonicNanoseconds() < end {}
            return CacheResponse(status: 204)
        }
        try await withServer(responder) { server in
            let other = try WireClient(server.port)
            try await other.send("GET /first HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await eventually { order.withLock { $0.count == 1 } })
            let client = try WireClient(server.port)
            let count = 1_000
            try await client.send(
                String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: count)
            )
            stile.pass()
            #expect(await eventually { order.withLock { $0.count == 2 } })
            try await other.send("GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
            stile.pass()
            for _ in 0..<2 { #expect(try await other.response().status == 204) }
            for _ in 0..<count { #expect(try await client.response().status == 204) }
            let place = order.withLock { $0.firstIndex(of: "http://x/other") }
            #expect(try #require(place) < count / 2)
        }
    }

    /// The client reads nothing: what its socket does not take is the memory that it holds.
    @Test func responsesThatNobodyReadsAreFew() async throws {
        let body = ByteChunk([UInt8](repeating: 7, count: 4_000))
        let responder = ScriptedResponder.hot { _ in
            CacheResponse(status: 200, body: BodyStream(body))
        }
        try await withServer(responder) { server in
            let client = try WireClient(server.port, receiveBytes: 16 * 1024)
            try await client.send(
                String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 4_000)
            )
            let counters = server.counters[0]
            var answered = 0
            for _ in 0..<100 {
                await pause(milliseconds: 100)
                if answered > 0, answered == counters[.hits] { break }
                answered = counters[.hits]
            }
            #expect(answered < 4_000)
            let queued = answered * 4_150 - counters[.bytesOut]
            #expect(queued < 2 * Worker.smallBytesMax, "\(queued)")
        }
    }
}
