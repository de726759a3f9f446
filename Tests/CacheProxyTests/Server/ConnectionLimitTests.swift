import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CacheProxy

/// Behaviour of a worker at its limit of connections.
@Suite struct ConnectionLimitTests {
    @Test func newClientTakesThePlaceOfTheLongestIdleConnection() async throws {
        try await withServer(ServerTests.echo) {
            $0.connectionsMax = 20
        } _: { server in
            let idle = try (0..<20).map { _ in try WireClient(server.port) }
            for client in idle {
                #expect(try await client.exchange(ServerTests.get).status == 200)
            }
            #expect(try await WireClient(server.port).exchange(ServerTests.get).status == 200)
            #expect(try await idle[0].isClosed())
            #expect(try await idle[19].exchange(ServerTests.get).status == 200)
        }
    }

    /// A server at its limit with clients that began to wait under the usual idle time.
    private static func withIdleClients(
        _ count: Int,
        thenIdle idleTime: Duration,
        _ body: (ProxyServer, [WireClient]) async throws -> Void
    ) async throws {
        var settings: ServerConfiguration?
        try await withServer(ServerTests.echo) {
            $0.connectionsMax = count
            settings = $0
        } _: { server in
            let idle = try (0..<count).map { _ in try WireClient(server.port) }
            for client in idle {
                #expect(try await client.exchange(ServerTests.get).status == 200)
            }
            var changed = try #require(settings)
            changed.timeouts.idle = idleTime
            server.configure(changed)
            try await body(server, idle)
        }
    }

    @Test(arguments: [Duration.seconds(30), .seconds(3_600)])
    func changedIdleTimeLeavesTheOrderOfThoseThatMakeRoom(idleTime: Duration) async throws {
        try await Self.withIdleClients(3, thenIdle: idleTime) { server, idle async throws in
            let begun = ContinuousClock.now
            #expect(try await WireClient(server.port).exchange(ServerTests.get).status == 200)
            #expect(ContinuousClock.now - begun < .seconds(5))
            #expect(try await idle[0].isClosed())
            #expect(try await idle[2].exchange(ServerTests.get).status == 200)
        }
    }

    @Test func loweredIdleTimeEndsThoseThatWaitAlready() async throws {
        try await Self.withIdleClients(3, thenIdle: .milliseconds(300)) { _, idle async throws in
            let begun = ContinuousClock.now
            for client in idle { #expect(try await client.isClosed()) }
            #expect(ContinuousClock.now - begun < .seconds(5))
        }
    }

    @Test func newClientComesAfterTheEndOfThoseAboveALoweredLimit() async throws {
        let count = 2 * Worker.candidatesMax
        var settings: ServerConfiguration?
        try await withServer(ServerTests.echo) {
            settings = $0
        } _: { server in
            let idle = try (0..<count).map { _ in try WireClient(server.port) }
            for client in idle {
                #expect(try await client.exchange(ServerTests.get).status == 200)
            }
            var lower = try #require(settings)
            lower.connectionsMax = 2
            server.configure(lower)
            // The response comes through the mailbox, after the new limit.
            #expect(try await idle[count - 1].exchange(ServerTests.get).status == 200)
            let first = try WireClient(server.port)
            #expect(try await first.exchange(ServerTests.get).status == 200)
            try #require(server.counters[0][.displaced] == count - 1)
            for client in idle.dropLast() { #expect(try await client.isClosed()) }
            #expect(try await idle[count - 1].exchange(ServerTests.get).status == 200)
            // At the limit, one goes for each that comes.
            let second = try WireClient(server.port)
            #expect(try await second.exchange(ServerTests.get).status == 200)
            #expect(try await first.isClosed())
            #expect(server.counters[0][.displaced] == count)
            #expect(try await idle[count - 1].exchange(ServerTests.get).status == 200)
        }
    }

    @Test func connectionBeingAnsweredKeepsItsPlace() async throws {
        let gate = Gate()
        let responder = ScriptedResponder { request in
            if request.url.hasSuffix("/slow") { await gate.wait() }
            return .text("done")
        }
        try await withServer(responder) {
            $0.connectionsMax = 2
        } _: { server in
            let busy = try WireClient(server.port)
            try await busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await eventually { !responder.urls.isEmpty })
            for _ in 0..<3 {
                let client = try WireClient(server.port)
                #expect(try await client.exchange(ServerTests.get).status == 200)
                // The connection stays open and idle while the next client connects.
                Task { _ = try? await client.rest() }
            }
            await gate.open()
            #expect(try await busy.response().text == "done")
        }
    }

    /// They have their responses, and send content that is only dropped, for as long as they like.
    @Test func clientsThatDripContentMakeRoom() async throws {
        let responder = ScriptedResponder { request in
            request.method == .get ? .text("done") : .text("no", status: 413)
        }
        try await withServer(responder) {
            $0.connectionsMax = 2
        } _: { server in
            let dripping = try (0..<2).map { _ in try WireClient(server.port) }
            for client in dripping {
                let head = "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n"
                let early = try await client.exchange(head)
                #expect(early.status == 413 && early["Connection"] == nil)
            }
            let drips = Task {
                while !Task.isCancelled {
                    // Fails once the server has closed the connection.
                    for client in dripping { try? await client.send("x") }
                    await pause(milliseconds: 50)
                }
            }
            defer { drips.cancel() }
            await pause(milliseconds: Int32(Worker.waitMillisecondsMin) + 100)
            let begun = ContinuousClock.now
            #expect(try await WireClient(server.port).exchange(ServerTests.get).status == 200)
            #expect(ContinuousClock.now - begun < .seconds(5))
            #expect(server.counters[0][.displaced] == 1)
        }
    }

    /// It only drops content, but the system still sends its response, for as long as a client may
    /// take nothing.
    @Test(arguments: [(Duration.seconds(60), true), (.milliseconds(100), false)])
    func clientThatStillReadsItsResponseKeepsItsPlace(_ row: (limit: Duration, isKept: Bool))
        async throws
    {
        let page = String(repeating: "x", count: 128 << 10)
        let responder = ScriptedResponder { request in
            request.method == .get ? .text("done") : .text(page, status: 413)
        }
        try await withServer(responder) {
            $0.connectionsMax = 2
            $0.timeouts.write = row.limit
        } _: { server in
            let reading = try WireClient(server.port, receiveBytes: 16 << 10)
            try await reading.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 9999\r\n\r\n")
            #expect(await eventually { !responder.urls.isEmpty })
            await pause(milliseconds: 100)
            let idle = try WireClient(server.port)
            #expect(try await idle.exchange(ServerTests.get).status == 200)
            await pause(milliseconds: Int32(Worker.waitMillisecondsMin) + 100)
            let new = try WireClient(server.port)
            #expect(try await new.exchange(ServerTests.get).status == 200)
            #expect(server.counters[0][.displaced] == 1)
            guard row.isKept else {
                #expect(try await idle.exchange(ServerTests.get).status == 200)
                return
            }
            #expect(try await idle.isClosed())
            try await reading.send("y")
            let response = try await reading.response()
            #expect(response.isComplete && response.text == page)
        }
    }

    /// The new client comes in the same turn as the first segment of the request.
    @Test func clientThatBeginsARequestKeepsItsPlace() async throws {
        let stile = TurnStile()
        let isBlocked = Atomic(false)
        let responder = ScriptedResponder.hot { request in
            if request.url.hasSuffix("/block") {
                isBlocked.store(true, ordering: .relaxed)
                stile.wait()
            }
            return .text("done")
        }
        try await withServer(responder) {
            $0.connectionsMax = 3
        } _: { server in
            let longest = try WireClient(server.port)
            #expect(try await longest.exchange(ServerTests.get).status == 200)
            await pause(milliseconds: 20)
            let other = try WireClient(server.port)
            #expect(try await other.exchange(ServerTests.get).status == 200)
            let busy = try WireClient(server.port)
            try await busy.send("GET /block HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await eventually { isBlocked.load(ordering: .relaxed) })
            let new = try WireClient(server.port)
            try await longest.send("GET / HTTP/1.1\r\n")
            await pause(milliseconds: Int32(Worker.waitMillisecondsMin) + 100)
            stile.pass()
            #expect(try await new.exchange(ServerTests.get).status == 200)
            try await longest.send("Host: x\r\n\r\n")
            #expect(try await longest.response().status == 200)
            #expect(try await other.isClosed())
        }
    }

    @Test func silentConnectionsDoNotBlockTheAdministrator() async throws {
        try await AdminTests.withAdmin { _, _, port async throws in
            let silent = try await onThread { try (0..<256).map { _ in try WireClient(port) } }
            let begun = ContinuousClock.now
            #expect(try await AdminTests.ask(port, "GET /healthz").text == "ok\n")
            #expect(ContinuousClock.now - begun < .seconds(5))
            withExtendedLifetime(silent) {}
        }
    }
}
