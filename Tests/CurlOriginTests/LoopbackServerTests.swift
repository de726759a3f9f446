import CacheEngine
import CacheTestSupport
import CurlOrigin
import Testing

/// Tests of the test server itself.
@Suite(.timeLimit(.minutes(1))) struct LoopbackServerTests {
    @Test func requestsAndConnectionsAreCounted() async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(body: request.path)
            if request.target == "/last?x" { connection.close() }
        }
        let origin = CurlOrigin()
        for target in ["/a", "/b", "/last?x", "/c"] {
            _ = try await origin.fetch(OriginRequest(url: server.baseURL + target)).body.collect()
        }
        #expect(server.requestCount == 4)
        #expect(server.connectionCount == 2)
        #expect(server.requests.map(\.path) == ["/a", "/b", "/last", "/c"])
        #expect(
            server.requests.map { $0["host"] }
                == Array(repeating: "127.0.0.1:\(server.port)", count: 4)
        )
    }

    @Test func stoppedServerClosesWhatIsOpen() async throws {
        let (events, continuation) = AsyncStream<Void>.makeStream()
        let server = try LoopbackServer { _, connection in
            continuation.yield()
            connection.waitForClose()
        }
        let url = server.baseURL
        let fetch = Task { try await CurlOrigin().fetch(OriginRequest(url: url)) }
        for await _ in events { break }
        #expect(server.openConnectionCount == 1)
        server.stop()
        await #expect(throws: CacheError.self) { _ = try await fetch.value }
        #expect(await eventually { server.openConnectionCount == 0 })
    }

    @Test func serversHavePortsOfTheirOwn() throws {
        let servers = try (0..<3).map { _ in try LoopbackServer { _, _ in } }
        #expect(Set(servers.map(\.port)).count == 3)
    }
}
