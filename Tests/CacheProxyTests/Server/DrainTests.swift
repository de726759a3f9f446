import CacheTestSupport
import CurlOrigin
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// The responses of a proxy during its shutdown.
@Suite(.serialized) struct DrainTests {
    /// The results of all clients' requests.
    final class Tally: Sendable {
        let answered = Atomic(0)
        let lost = Mutex<[String]>([])
    }

    /// Sends requests on one connection after another until no server listens.
    ///
    /// `pauseMilliseconds` is the idle time between two requests of a connection.
    static func ask(_ port: UInt16, persists: Bool, pauseMilliseconds: Int32, _ tally: Tally) {
        let get = "GET / HTTP/1.1\r\nHost: x\r\n\(persists ? "" : "Connection: close\r\n")\r\n"
        while let client = try? WireClient(port) {
            var isOpen = true
            while isOpen {
                do {
                    try client.socket.write(get)
                    let response = try client.read(isHead: false)
                    tally.answered.add(1, ordering: .relaxed)
                    isOpen = response["Connection"] != "close"
                } catch {
                    tally.lost.withLock { $0.append("\(persists ? "kept" : "new"): \(error)") }
                    return
                }
                if isOpen { poll(nil, 0, pauseMilliseconds) }
            }
        }
    }

    @Test(arguments: [1, 2])
    func terminationUnderLoadLosesNothing(workers: Int) async throws {
        let origin = try WireOrigin { _, socket in
            try socket.answer(200, ["Cache-Control: max-age=600"], "hot")
        }
        defer { origin.stop() }
        for _ in 0..<3 {
            let program = try await RunningProgram([
                "--origin", "http://127.0.0.1:\(origin.port)", "--workers", "\(workers)",
            ])
            let tally = Tally()
            try await withThrowingTaskGroup(of: Void.self) { group in
                for number in 0..<48 {
                    group.addTask {
                        try await onThread {
                            Self.ask(
                                program.port,
                                persists: number % 3 != 0,
                                pauseMilliseconds: Int32(number % 4),
                                tally
                            )
                        }
                    }
                }
                let isLoaded = await eventually { tally.answered.load(ordering: .relaxed) > 3_000 }
                #expect(isLoaded)
                #expect(try await program.end() == 0)
                try await group.waitForAll()
            }
            let lost = tally.lost.withLock { $0 }
            let answered = tally.answered.load(ordering: .relaxed)
            #expect(lost.isEmpty, "\(lost.count) beside \(answered): \(lost.prefix(3))")
        }
    }

    @Test func keptConnectionIsAnsweredOnceMoreAndIdleOnesEnd() async throws {
        let server = try ProxyServer(
            ServerConfiguration(address: .tcp(host: "127.0.0.1", port: 0), name: "me"),
            responder: ServerTests.echo
        )
        let clients = try (0..<3).map { _ in try WireClient(server.port) }
        for client in clients {
            #expect(try await client.exchange(ServerTests.get)["Connection"] == nil)
        }
        async let drained: Void = server.drain()
        // The drain has begun once a response carries `Connection: close`.
        let isDraining = try await onThread {
            for _ in 0..<10_000 {
                try clients[0].socket.write(ServerTests.get)
                if try clients[0].read(isHead: false)["Connection"] == "close" { return true }
            }
            return false
        }
        #expect(isDraining)
        let last = try await clients[1].exchange(ServerTests.get)
        #expect(last.status == 200 && last["Connection"] == "close")
        #expect(try await clients[1].isClosed())
        #expect(try await clients[2].isClosed())
        await drained
    }

    /// A worker without connections ends while another one still answers.
    @Test func logIsOpenedAgainWhileOneWorkerIsLeft() async throws {
        let gate = Gate()
        let responder = ScriptedResponder { _ in
            await gate.wait()
            return .text("late")
        }
        let path = NSTemporaryDirectory() + "cache-proxy-log-\(UUID().uuidString)"
        defer { for name in [path, path + ".1"] { ConfigurationReaderTests.remove(name) } }
        var settings = ServerConfiguration(address: .tcp(host: "127.0.0.1", port: 0), name: "me")
        settings.workers = 2
        settings.accessLog = path
        let server = try ProxyServer(settings, responder: responder)
        // The kernel chooses the worker; the first one must be left without a connection.
        var client = try WireClient(server.port)
        try await client.send(ServerTests.get)
        while await eventually({ server.counters.contains { $0[.connectionsOpen] > 0 } }),
            server.counters[0][.connectionsOpen] > 0
        {
            client.socket.abort()
            #expect(await eventually { server.counters[0][.connectionsOpen] == 0 })
            client = try WireClient(server.port)
            try await client.send(ServerTests.get)
        }
        let busy = client
        async let drained: Void = server.drain()
        // The listener of the other worker ends half a second later.
        #expect(try await onThread { busy.socket.isSilent(milliseconds: 1_500) })
        try FileManager.default.moveItem(atPath: path, toPath: path + ".1")
        server.reopenLog()
        await gate.open()
        #expect(try await busy.response().text == "late")
        await drained
        #expect(try String(contentsOfFile: path, encoding: .utf8).contains("GET /a "))
    }

    // MARK: Exchanges with origins

    /// A service with two workers, whose origin holds each request after the first `answeredCount`.
    private static func withHeldExchanges(
        after answeredCount: Int,
        _ body: (ProxyService, UInt16, WireOrigin, TurnStile, TestClock) async throws -> Void
    ) async throws {
        let stile = TurnStile()
        let origin = try WireOrigin { request, socket in
            if request.number >= answeredCount { stile.wait() }
            let control = "Cache-Control: max-age=1, stale-while-revalidate=100"
            return try socket.answer(200, [control], "page")
        }
        defer {
            stile.pass()
            origin.stop()
        }
        var configuration = ProxyConfiguration()
        configuration.listen = .tcp(host: "127.0.0.1", port: 0)
        configuration.origins = [try #require(OriginAddress("http://127.0.0.1:\(origin.port)"))]
        configuration.workers = 2
        configuration.drainTime = .seconds(30)
        let curl = ProxyService.curlConfiguration(configuration)
        let clock = TestClock()
        let service = try await ProxyService(
            configuration,
            upstream: ProxyService.upstream(curl, ConnectionBudget(curl.connections)),
            clock: clock
        )
        guard case .tcp(_, let port) = service.address else { throw WireFailure("no port") }
        try await body(service, port, origin, stile, clock)
    }

    private static func openCount(_ service: ProxyService) -> Int {
        service.counters.reduce(0) { $0 + $1[.connectionsOpen] }
    }

    enum Unwanted: CaseIterable { case refresh, fetchOfAClientThatLeft }

    @Test(arguments: Unwanted.allCases)
    func drainWithoutAClientAwaitsNoExchange(unwanted: Unwanted) async throws {
        let answeredCount = unwanted == .refresh ? 1 : 0
        try await Self.withHeldExchanges(after: answeredCount) {
            service,
            port,
            origin,
            _,
            clock async throws in
            if unwanted == .refresh {
                let client = try WireClient(port)
                #expect(try await client.exchange(ServerTests.get).status == 200)
                clock.advance(seconds: 2)
                #expect(try await client.exchange(ServerTests.get).isHit)
                #expect(await eventually { origin.count == 2 })
            } else {
                let client = try WireClient(port)
                try await client.send(ServerTests.get)
                #expect(await eventually { origin.count == 1 })
                client.socket.abort()
            }
            #expect(await eventually { Self.openCount(service) == 0 })
            let begun = ContinuousClock.now
            await service.shutDown()
            #expect(ContinuousClock.now - begun < .seconds(15))
            // The exchange was cut here.
            #expect(service.pool.members.allSatisfy { $0.isSound })
        }
    }

    /// The client that began the fetch has left, and its worker has no other.
    @Test func exchangeThatAClientOfAnotherWorkerAwaitsOutlivesTheDrainOfItsOwn() async throws {
        try await Self.withHeldExchanges(after: 0) {
            service,
            port,
            origin,
            stile,
            _ async throws in
            let leader = try WireClient(port)
            try await leader.send(ServerTests.get)
            #expect(await eventually { origin.count == 1 })
            let own = try #require(service.counters.first { $0[.connectionsOpen] == 1 })
            // The kernel chooses the worker.
            var follower = try WireClient(port)
            while await eventually({ Self.openCount(service) == 2 }), own[.connectionsOpen] == 2 {
                follower.socket.abort()
                #expect(await eventually { Self.openCount(service) == 1 })
                follower = try WireClient(port)
            }
            let other = follower
            try await other.send(ServerTests.get)
            #expect(await eventually { service.counters.reduce(0) { $0 + $1[.exchanges] } == 2 })
            leader.socket.abort()
            #expect(await eventually { own[.connectionsOpen] == 0 })
            async let drained: Void = service.shutDown()
            // The listener of the leader's worker ends half a second later.
            #expect(try await onThread { other.socket.isSilent(milliseconds: 1_500) })
            stile.pass()
            #expect(try await other.response().text == "page")
            #expect(origin.count == 1)
            await drained
        }
    }
}
