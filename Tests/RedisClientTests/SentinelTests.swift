import CacheTestSupport
import Platform
import RESP
import RedisTestSupport
import Testing

@testable import RedisClient

/// The client with sentinels that name its master: scripted ones, and a real one.
@Suite(.timeLimit(.minutes(2))) struct SentinelTests {
    private func reply(_ words: String...) -> String {
        words.reduce("*\(words.count)\r\n") { $0 + "$\($1.utf8.count)\r\n\($1)\r\n" }
    }

    private func server(role: String) throws -> FakeServer {
        try FakeServer { connection in
            connection.serve { $0 == ["ROLE"] ? reply(role, "0") : "+\(role)\r\n" }
        }
    }

    @Test func masterIsAskedForAtASentinelThatIsUp() async throws {
        let master = try server(role: "master")
        let port = master.port
        let sentinel = try FakeServer { connection in
            connection.serve { words in
                words == ["SENTINEL", "get-master-addr-by-name", "m"]
                    ? reply("127.0.0.1", "\(port)") : "-ERR \(words)\r\n"
            }
        }
        let hosts = "127.0.0.1:\(ClosedPort.number),127.0.0.1:\(sentinel.port)"
        let client = try RedisClient("redis-sentinel://u:p@\(hosts)#m")
        #expect(await client.code() == .masterUnknown)
        let isServed = await eventually { await client.code() == nil }
        #expect(isServed)
        #expect(master.connectionCount == 1)
    }

    @Test func serverThatIsNoMasterIsNotUsed() async throws {
        let replica = try server(role: "slave")
        let port = replica.port
        let sentinel = try FakeServer { connection in
            connection.serve { _ in reply("127.0.0.1", "\(port)") }
        }
        let client = try RedisClient("redis-sentinel://127.0.0.1:\(sentinel.port)#m")
        let isAsked = await eventually {
            #expect([.masterUnknown, .readOnly].contains(await client.code()))
            return client.counts.refreshes >= 2
        }
        #expect(isAsked)
    }

    /// A reply that keeps the client from its master, and what the client says of it.
    @Test(arguments: [
        ("AUTH", "-WRONGPASS invalid username-password pair\r\n", "WRONGPASS"),
        ("ROLE", "-NOPERM this user has no permissions\r\n", "NOPERM"),
        ("SENTINEL", "-NOAUTH Authentication required.\r\n", "NOAUTH"),
        ("SENTINEL", "*-1\r\n", "knows no master m"),
    ])
    func causeOfAnUnknownMasterIsNamed(name: String, text: String, cause: String) async throws {
        let master = try FakeServer { connection in
            connection.serve { words in
                if words[0] == name { return text }
                return words[0] == "ROLE" ? reply("master", "0") : "+OK\r\n"
            }
        }
        let port = master.port
        let sentinel = try FakeServer { connection in
            connection.serve { $0[0] == name ? text : reply("127.0.0.1", "\(port)") }
        }
        let client = try RedisClient("redis-sentinel://u:p@127.0.0.1:\(sentinel.port)#m")
        let isNamed = await eventually {
            do throws(RedisError) {
                _ = try await client.send(RESPCommand("GET", key: "k"))
                return false
            } catch { return error.detail.contains(cause) }
        }
        #expect(isNamed)
    }

    /// A failover by hand: the replica becomes the master, and the sentinel says so.
    @Test(.enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"))
    func failoverIsFollowed() async throws {
        let master = try await RedisProcess("--repl-diskless-sync-delay", "0")
        let replica = try await RedisProcess("--replicaof", "127.0.0.1", "\(master.port)")
        let sentinel = try await RedisProcess(sentinelOf: master)
        let client = try RedisClient("redis-sentinel://\(sentinel.address)#m")
        let isServed = await eventually {
            await client.code(of: RESPCommand("SET", key: "k", "v")) == nil
        }
        try #require(isServed)
        let isReplicated = await eventually {
            (try? await replica.cli("GET", "k")) == "v\n"
        }
        try #require(isReplicated)
        // It looks for replicas each 10 seconds unless it is told to hurry.
        let isQuick = await eventually {
            (try? await sentinel.cli("SENTINEL", "DEBUG", "info-period", "200")) == "OK\n"
        }
        #expect(isQuick)
        let isBegun = await eventually {
            (try? await sentinel.cli("SENTINEL", "failover", "m")) == "OK\n"
        }
        try #require(isBegun)
        let isPromoted = await eventually {
            let role = try? await replica.cli("ROLE")
            return role?.hasPrefix("master") == true
        }
        try #require(isPromoted)
        let isFollowed = await eventually {
            _ = await client.code(of: RESPCommand("SET", key: "k", "w"))
            return (try? await replica.cli("GET", "k")) == "w\n"
        }
        #expect(isFollowed)
        withExtendedLifetime((master, replica, sentinel)) {}
    }
}
