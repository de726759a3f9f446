import CacheEngine
import CacheTestSupport
import Foundation
import Platform
import Testing

@testable import CacheProxy

/// Clients that read or send slowly, and their effect on other clients (X22).
@Suite struct SlowClientTests {
    /// Event streams, slow readers and trickling uploads each hold a connection to the origin.
    @Test func slowClientsDoNotHoldUpAMiss() async throws {
        let large = String(repeating: "x", count: 1 << 20)
        try await withProxy({ request, socket in
            if request.target.hasPrefix("/events") {
                try socket.write("HTTP/1.1 200 OK\r\nCache-Control: no-store\r\n\r\ndata: 1\n\n")
                _ = try socket.readToEnd()
                return .end
            }
            if request.target.hasPrefix("/large") {
                return try socket.answer(200, ["Cache-Control: no-store"], large)
            }
            return try socket.answer(200, [], "quick")
        }) { proxy, _ async throws in
            var slow: [WireClient] = []
            for number in 0..<300 {
                let client = try proxy.client()
                try await client.send("GET /events/\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
                slow.append(client)
            }
            for _ in 0..<100 {
                let client = try proxy.client()
                try await client.send("PUT /u HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\na")
                slow.append(client)
            }
            for number in 0..<20 {
                let client = try WireClient(proxy.port, receiveBytes: 4_096)
                try await client.send("GET /large/\(number) HTTP/1.1\r\nHost: x\r\n\r\n")
                slow.append(client)
            }
            let clock = ContinuousClock()
            var durations: [Duration] = []
            for number in 0..<20 {
                let start = clock.now
                let response = try await proxy.request("/\(number)")
                #expect(response.status == 200 && response.text == "quick")
                durations.append(clock.now - start)
            }
            // The median, with a wide limit: other tests may occupy the machine for a moment.
            #expect(durations.sorted()[durations.count / 2] < .seconds(3))
            withExtendedLifetime(slow) {}
        }
    }

    /// The pieces arrive in time, but the whole upload takes longer than the limit.
    @Test(arguments: ["Content-Length: 125", "Transfer-Encoding: chunked"])
    func steadyUploadMayTakeLongerThanAnAnswer(framing: String) async throws {
        let witness = StallWitness()
        let watching = Task { await witness.watch() }
        defer { watching.cancel() }
        try await withProxy(
            { request, socket in try socket.answer(200, [], "\(request.body.count)") },
            configure: {
                $0.firstByteTime = .seconds(1)
                $0.betweenBytesTime = .seconds(1)
            }
        ) { proxy, origin async throws in
            var response = WireResponse()
            var (attempts, before) = (0, 0)
            var stalled: UInt64
            // An upload that the machine stops for half a limit is not steady.
            repeat {
                before = origin.count
                let start = monotonicNanoseconds()
                response = try await Self.upload(to: proxy, framing)
                await pause(milliseconds: 20)
                let time = start..<monotonicNanoseconds()
                stalled = UInt64(time.count) - witness.busyNanoseconds(time)
                attempts += 1
            } while stalled > 500_000_000 && attempts < 5
            #expect(response.status == 200 && response.text == "125", "\(stalled) ns stalled")
            #expect(origin.count == before + 1)
        }
    }

    private static func upload(
        to proxy: ProxyHarness,
        _ framing: String
    ) async throws -> WireResponse {
        let client = try proxy.client()
        try await client.send("PUT /u HTTP/1.1\r\nHost: x\r\n\(framing)\r\n\r\n")
        let isChunked = framing.hasSuffix("chunked")
        for _ in 0..<25 {
            await pause(milliseconds: 100)
            try await client.send(isChunked ? "5\r\n01234\r\n" : "01234")
        }
        return try await client.exchange(isChunked ? "0\r\n\r\n" : "")
    }

    // The engine has the clock of the test; the clients of origins, and the proxy towards its own
    // clients, have the system's.

    /// Lets the clock of the engine pass in steps of a second, each with a pause.
    private static func pass(
        seconds: Int,
        pauseMilliseconds: Int32,
        _ proxy: ProxyHarness
    ) async {
        for _ in 0..<seconds {
            await pause(milliseconds: pauseMilliseconds)
            proxy.advance(1)
        }
    }

    private static let uploadHead = "PUT /u HTTP/1.1\r\nHost: x\r\nContent-Length: "

    @Test(arguments: UpstreamKind.allCases)
    func pauseOfAClientIsNoLateResponse(kind: UpstreamKind) async throws {
        let origin = try WireOrigin { request, socket in
            try socket.answer(200, [], "\(request.body.count)")
        }
        defer { origin.stop() }
        try await withProxy(
            origins: [origin.port],
            configure: { $0.firstByteTime = .seconds(2) },
            upstream: kind.make
        ) { proxy async throws in
            let client = try proxy.client()
            try await client.send(Self.uploadHead + "10\r\n\r\n01234")
            await Self.pass(seconds: 50, pauseMilliseconds: 50, proxy)
            let response = try await client.exchange("56789")
            #expect(response.status == 200 && response.text == "10")
            #expect(await proxy.service.cache.statistics.timeouts == 0)
        }
    }

    @Test(arguments: UpstreamKind.allCases)
    func clientThatStopsInAnUploadIsNoFaultOfTheOrigin(kind: UpstreamKind) async throws {
        let origin = try WireOrigin { _, socket in try socket.answer() }
        defer { origin.stop() }
        try await withProxy(
            origins: [origin.port],
            configure: {
                $0.firstByteTime = .seconds(2)
                $0.betweenBytesTime = .seconds(1)
            },
            upstream: kind.make
        ) { proxy async throws in
            let client = try proxy.client()
            try await client.send(Self.uploadHead + "10\r\n\r\n01234")
            await Self.pass(seconds: 30, pauseMilliseconds: 50, proxy)
            #expect(try await client.response().status == 504)
            #expect(await proxy.service.cache.statistics.timeouts == 0)
        }
    }

    /// More content than the system's buffers hold, and an origin that pauses after each piece.
    @Test(arguments: UpstreamKind.allCases)
    func originThatTakesAnUploadSlowlyIsNotLate(kind: UpstreamKind) async throws {
        let (listener, port) = try WireSocket.listening(waiting: 1, receiveBytes: 256 << 10)
        defer { close(listener) }
        let (count, piece, pieceCount) = (24 << 20, 1 << 20, 8)
        try await withProxy(
            origins: [port],
            configure: { $0.firstByteTime = .seconds(2) },
            upstream: kind.make
        ) { proxy async throws in
            let client = try proxy.client()
            let content = String(repeating: "x", count: count)
            async let answer = client.exchange(Self.uploadHead + "\(count)\r\n\r\n" + content)
            let origin = try await onThread { try WireSocket.accepted(by: listener) }
            _ = try await onThread { try origin.read(through: "\r\n\r\n") }
            for _ in 0..<pieceCount {
                _ = try await onThread { try origin.read(exactly: piece) }
                await Self.pass(seconds: 10, pauseMilliseconds: 20, proxy)
            }
            let rest = count - pieceCount * piece
            let last = try await onThread { try origin.read(exactly: rest) }
            #expect(last?.count == rest)
            _ = try await onThread { try origin.answer(200, [], "taken") }
            let response = try await answer
            #expect(response.status == 200 && response.text == "taken")
            #expect(await proxy.service.cache.statistics.timeouts == 0)
        }
    }

    @Test func originThatHangsAfterAnUploadIs504() async throws {
        try await withProxy(
            { _, socket in
                _ = try socket.readToEnd()
                return .end
            },
            configure: { $0.firstByteTime = .seconds(0.3) }
        ) { proxy, origin async throws in
            #expect(try await proxy.request("/", method: "PUT", body: "hello").status == 504)
            #expect(origin.count == 1)
        }
    }
}
