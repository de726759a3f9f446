import CacheTestSupport
import RESP
import RedisTestSupport
import Testing

@testable import RedisClient

/// The client against a real redis-server.
@Suite(.enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"), .timeLimit(.minutes(5)))
struct RealRedisTests {
    private func startedServer() async throws -> (RedisProcess, RedisClient) {
        let server = try await RedisProcess()
        let client = try RedisClient(server.url)
        let isUp = await eventually { await client.code() == nil }
        try #require(isUp)
        return (server, client)
    }

    @Test func tenThousandKeysAreWrittenAndRead() async throws {
        let (server, client) = try await startedServer()
        for start in stride(from: 0, to: 10_000, by: 1_000) {
            let numbers = start..<start + 1_000
            let written = try await client.together(
                numbers.map { RESPCommand("SET", key: "key:\($0)", "value \($0)") },
                by: []
            )
            #expect(written == Array(repeating: .simple("OK"), count: 1_000))
            let read = try await client.together(
                numbers.map { RESPCommand("GET", key: "key:\($0)") },
                by: []
            )
            #expect(read == numbers.map { .bulk(Array("value \($0)".utf8)) })
        }
        #expect(try await client.send(RESPCommand("DBSIZE")) == .integer(10_000))
        withExtendedLifetime(server) {}
    }

    @Test func everyByteOfAMegabyteComesBack() async throws {
        let (server, client) = try await startedServer()
        var random = SeededRandom(seed: 1)
        let value = (0..<1 << 20).map { _ in UInt8(truncatingIfNeeded: random.next()) }
        var set = RESPCommand("SET", key: "large")
        set.add(value)
        #expect(try await client.send(set) == .simple("OK"))
        #expect(try await client.send(RESPCommand("GET", key: "large")) == .bulk(value))
        #expect(try await client.send(RESPCommand("GET", key: "absent")) == .nilBulk)
        let all = try await client.send(RESPCommand("MGET", key: "large", "absent"))
        #expect(all == .array([.bulk(value), .nilBulk]))
        withExtendedLifetime(server) {}
    }

    @Test func errorOfTheServerIsKnown() async throws {
        let (server, client) = try await startedServer()
        _ = try await client.send(RESPCommand("SET", key: "text", "a"))
        let error = await #expect(throws: RedisError.self) {
            try await client.send(RESPCommand("INCR", key: "text"))
        }
        #expect(error?.code == .refused)
        #expect(error?.detail.hasSuffix("ERR value is not an integer or out of range") == true)
        withExtendedLifetime(server) {}
    }

    @Test func wrongPasswordIsNamedAndNotShown() async throws {
        let server = try await RedisProcess("--requirepass", "right-word")
        let client = try RedisClient("redis://:right-word@\(server.address)")
        let isServed = await eventually { await client.code() == nil }
        #expect(isServed)
        for url in ["redis://:wrong-word@\(server.address)", server.url] {
            let stranger = try RedisClient(url)
            let error = await #expect(throws: RedisError.self) {
                try await stranger.send(RESPCommand("GET", key: "k"))
            }
            #expect(error?.code == .notPermitted)
            #expect(error?.description.contains("wrong-word") == false)
        }
    }

    @Test func stoppedServerCostsCallersTheirLimitAndIsUsedAgain() async throws {
        let (server, patient) = try await startedServer()
        await patient.shutDown()
        let client = try RedisClient(server.url, RedisOptions(readLimit: .milliseconds(100)))
        let isServed = await eventually { await client.code() == nil }
        #expect(isServed)
        server.stop()
        // Five failed connections of at most 200 ms.
        let isSuspended = await eventually { await client.code() == .suspended }
        #expect(isSuspended)
        var refusals = 0
        for _ in 0..<100 {
            let code = await client.code()
            #expect(code == .suspended || code == .timedOut || code == .unreachable)
            if code == .suspended { refusals += 1 }
        }
        // A command that is refused does not wait.
        #expect(refusals > 50)
        server.resume()
        let isUsed = await eventually { await client.code() == nil }
        #expect(isUsed)
        #expect(client.counts.openings > 0)
    }

    @Test func killedServerIsUsedAfterItsRestart() async throws {
        let (server, client) = try await startedServer()
        server.kill()
        let isDown = await eventually { [.cut, .unreachable].contains(await client.code()) }
        #expect(isDown)
        let isSuspended = await eventually { await client.code() == .suspended }
        #expect(isSuspended)
        try await server.start()
        let isUsed = await eventually { await client.code() == nil }
        #expect(isUsed)
    }

    @Test func blockingCommandWaitsOnItsLane() async throws {
        let (server, client) = try await startedServer()
        let wait = RESPCommand("BLPOP", key: "list", "20")
        async let popped = client.send(wait, within: .seconds(30), lane: .blocking)
        let isWaiting = await eventually {
            let reply = try? await client.send(RESPCommand("INFO", key: nil, "clients"))
            return reply?.text?.contains("blocked_clients:1") == true
        }
        #expect(isWaiting)
        _ = try await client.send(RESPCommand("RPUSH", key: "list", "a"))
        #expect(try await popped == .array([.bulk(Array("list".utf8)), .bulk([0x61])]))
        withExtendedLifetime(server) {}
    }
}
