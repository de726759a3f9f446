import CacheTestSupport
import Platform
import RESP
import Synchronization
import Testing

@testable import RedisClient

/// The connections of a client to a scripted server: how they begin, fail, end and are kept.
@Suite(.timeLimit(.minutes(1))) struct RedisConnectionTests {
    @Test func lateReplyEndsTheConnectionAndTheNextOneServes() async throws {
        let server = try FakeServer { connection in
            connection.serve { words in
                guard connection.number == 1, words[1] == "slow" else { return "+fast\r\n" }
                connection.waitForClose()
                return nil
            }
        }
        let client = try RedisClient(server.url)
        #expect(try await client.send(RESPCommand("GET", key: "a")) == .simple("fast"))
        let slow = await client.code(of: RESPCommand("GET", key: "slow"), within: .milliseconds(30))
        #expect(slow == .timedOut)
        #expect(try await client.send(RESPCommand("GET", key: "slow")) == .simple("fast"))
        #expect(server.connectionCount == 2)
    }

    @Test func commandsBehindALateReplyFailWithIt() async throws {
        let server = try FakeServer { connection in
            connection.serve { $0.contains("first") ? "+ok\r\n" : "" }
        }
        let client = try RedisClient(server.url)
        // A command that waits for the connection fails alone.
        #expect(try await client.send(RESPCommand("GET", key: "first")) == .simple("ok"))
        let started = monotonicNanoseconds()
        let codes = await withTaskGroup(of: RedisError.Code?.self) { tasks in
            for _ in 0..<19 { tasks.addTask { await client.code(within: .seconds(60)) } }
            tasks.addTask {
                #expect(await eventually { client.counts.waiting == 19 })
                return await client.code(within: .milliseconds(100))
            }
            return await tasks.reduce(into: []) { $0.append($1) }
        }
        #expect(codes == Array(repeating: .timedOut, count: 20))
        #expect(monotonicNanoseconds() - started < 50_000_000_000)
        #expect(client.counts.failures == 20)
    }

    @Test func cutConnectionFailsWhatItOwesAndIsMadeAgain() async throws {
        let server = try FakeServer { connection in
            connection.serve { connection.number == 1 && $0[1] == "cut" ? nil : "+ok\r\n" }
        }
        let client = try RedisClient(server.url)
        #expect(await client.code(of: RESPCommand("GET", key: "cut")) == .cut)
        #expect(await client.code(of: RESPCommand("GET", key: "cut")) == nil)
        #expect(server.connectionCount == 2)
    }

    /// The address of one server may lead to the new master, and a connection that works would stay
    /// with the old one.
    @Test(arguments: [
        "-READONLY You can't write against a read only replica.\r\n",
        "-MASTERDOWN Link with MASTER is down\r\n",
    ])
    func connectionToAReplicaIsLeft(reply: String) async throws {
        let server = try FakeServer { connection in
            connection.serve { _ in connection.number == 1 ? reply : "+OK\r\n" }
        }
        let client = try RedisClient(server.url)
        let set = RESPCommand("SET", key: "k", "v")
        #expect([.readOnly, .loading].contains(await client.code(of: set)))
        #expect(await client.code(of: set) == nil)
        #expect(server.connectionCount == 2)
        #expect(client.counts.failures == 0 && client.counts.openings == 0)
    }

    /// A server that stays a replica gets one new connection in a second.
    @Test func connectionsAreNotLeftOneAfterTheOther() async throws {
        let server = try FakeServer { connection in connection.serve { _ in "-READONLY no\r\n" } }
        let client = try RedisClient(server.url)
        let started = monotonicNanoseconds()
        for _ in 0..<50 { #expect(await client.code() == .readOnly) }
        let seconds = Int((monotonicNanoseconds() - started) / 1_000_000_000)
        #expect(server.connectionCount <= 2 + seconds)
    }

    @Test(arguments: [
        "HTTP/1.1 400 Bad Request\r\n\r\n", "$1073741824\r\n", "*99999999999\r\n", "+a\n", "\0",
        "+ok\r\n+one too many\r\n",
    ])
    func invalidReplyEndsTheConnection(text: String) async throws {
        let server = try FakeServer { connection in
            connection.serve { connection.number == 1 && $0[1] == "bad" ? text : "+ok\r\n" }
        }
        let client = try RedisClient(server.url)
        let code = await client.code(of: RESPCommand("GET", key: "bad"))
        // The reply in front of one too many is a reply.
        #expect(code == (text.hasPrefix("+ok") ? nil : .misbehaved))
        let isServed = await eventually {
            await client.code() == nil && server.connectionCount == 2
        }
        #expect(isServed)
    }

    @Test func idleConnectionThatEndsIsNoFailure() async throws {
        let server = try FakeServer { connection in
            _ = connection.next()
            connection.send("+PONG\r\n")
            _ = connection.next()
            connection.send("+ok\r\n")
            connection.end()
        }
        let client = try RedisClient(server.url)
        for number in 1...20 {
            #expect(await client.code() == nil)
            let isClosed = await eventually { server.openCount == 0 }
            #expect(isClosed && server.connectionCount == number)
        }
        #expect(client.counts.failures == 0)
    }

    @Test func wrongServerIsNamed() async throws {
        let port = ClosedPort.number
        let client = try RedisClient("redis://127.0.0.1:\(port)")
        let error = await #expect(throws: RedisError.self) {
            try await client.send(RESPCommand("GET", key: "k"))
        }
        #expect(error?.code == .unreachable)
        #expect(error?.detail.contains("127.0.0.1:\(port)") == true)
    }

    /// Redis refuses a client beyond its limit so, before the client has sent anything.
    @Test func refusalOfAConnectionIsTold() async throws {
        let server = try FakeServer { connection in
            connection.send("-ERR max number of clients reached\r\n")
            connection.end()
        }
        var options = RedisOptions.patient
        options.connectionName = "engine"
        let client = try RedisClient(server.url, options)
        let error = await #expect(throws: RedisError.self) {
            try await client.send(RESPCommand("GET", key: "k"))
        }
        #expect(error?.code == .cut)
        let end = "was cut: the server closed it, after the reply: "
        #expect(error?.detail.hasSuffix(end + "ERR max number of clients reached") == true)
    }

    @Test func nameIsResolved() async throws {
        let server = try FakeServer.echo()
        let client = try RedisClient("redis://localhost:\(server.port)")
        #expect(try await client.send(RESPCommand("ECHO", key: nil, "a")) == .simple("a"))
        let unknown = try RedisClient("redis://does-not-exist.invalid")
        let error = await #expect(throws: RedisError.self) {
            try await unknown.send(RESPCommand("GET", key: "k"), within: .seconds(40))
        }
        #expect(error?.code == .unreachable)
        #expect(error?.detail.contains("does-not-exist.invalid") == true)
    }

    @Test func credentialsAndNameAreSentOnce() async throws {
        let seen = Mutex<[[String]]>([])
        let server = try FakeServer { connection in
            connection.serve { words in
                seen.withLock { $0.append(words) }
                return "+OK\r\n"
            }
        }
        var options = RedisOptions.patient
        options.connectionName = "engine"
        let client = try RedisClient("redis://me:p%20w@127.0.0.1:\(server.port)", options)
        #expect(await client.code() == nil)
        #expect(await client.code() == nil)
        let get = ["GET", "k"]
        let expected = [["AUTH", "me", "p w"], ["CLIENT", "SETNAME", "engine"], get, get]
        #expect(seen.withLock { $0 } == expected)
    }

    /// A server that does not know AUTH repeats its words, 128 bytes of them.
    @Test(arguments: [
        "fleet:s3cret-word", ":s3cret-word", ":" + String(repeating: "s3cret-", count: 40),
    ])
    func passwordThatAServerRepeatsIsNotShown(credentials: String) async throws {
        let server = try FakeServer { connection in
            connection.serve { words in
                guard words[0] == "AUTH" else { return "+OK\r\n" }
                let echo = words.dropFirst().map { "'\($0)' " }.joined().prefix(128)
                return "-ERR unknown command 'AUTH', with args beginning with: \(echo)\r\n"
            }
        }
        let client = try RedisClient("redis://\(credentials)@127.0.0.1:\(server.port)")
        let error = await #expect(throws: RedisError.self) {
            try await client.send(RESPCommand("GET", key: "k"))
        }
        #expect(error?.code == .refused)
        #expect(error?.detail.hasSuffix("replied: ERR (text withheld)") == true)
    }

    /// Commands that have not reached a late server never do: a system that sends them again could
    /// let them run behind those of the next connection.
    @Test(arguments: [true, false])
    func lateConnectionIsResetAndAnyOtherClosed(isLate: Bool) async throws {
        let end = Mutex<Int32?>(nil)
        let server = try FakeServer { connection in
            connection.serve { words in words == ["GET", "late"] ? nil : "+OK\r\n" }
            let error = connection.endError()
            end.withLock { $0 = error }
        }
        let client = try RedisClient(server.url)
        #expect(await client.code() == nil)
        if isLate {
            let code = await client.code(
                of: RESPCommand("GET", key: "late"),
                within: .milliseconds(50)
            )
            #expect(code == .timedOut)
        } else {
            await client.shutDown()
        }
        #expect(await eventually { end.withLock { $0 } == (isLate ? ECONNRESET : 0) })
    }

    @Test func silentServerIsSuspendedAndUsedAgain() async throws {
        let isSilent = Mutex(true)
        let server = try FakeServer { connection in
            while let words = connection.next() {
                if !isSilent.withLock({ $0 }) { connection.send("+\(words[0])\r\n") }
            }
        }
        var options = RedisOptions(connectLimit: .milliseconds(40))
        options.breaker.openLimitMin = .milliseconds(30)
        let client = try RedisClient(server.url, options)
        let isSuspended = await eventually { await client.code() == .suspended }
        #expect(isSuspended)
        #expect(client.counts.refusedByBreaker > 0 && client.counts.openings > 0)
        isSilent.withLock { $0 = false }
        let isUsed = await eventually { await client.code() == nil }
        #expect(isUsed)
    }

    /// A server that left its cluster is forgotten with its breaker, but not its counts.
    @Test func suspendedServerIsForgottenOnceNobodyAsks() async throws {
        let server = try FakeServer { connection in connection.waitForClose() }
        var options = RedisOptions(connectLimit: .milliseconds(40))
        options.breaker.openLimitMin = .seconds(60)
        options.breaker.openLimitMax = .seconds(60)
        options.idleLimit = .seconds(1)
        let client = try RedisClient(server.url, options)
        #expect(await eventually { await client.code() == .suspended })
        #expect(await eventually { !client.isSuspended })
        #expect(client.counts.openings >= 1 && client.counts.refusedByBreaker > 0)
    }

    /// A connection that works is kept: the next command does not wait for a new one.
    @Test func idleConnectionIsKept() async throws {
        let server = try FakeServer.echo()
        var options = RedisOptions.patient
        options.idleLimit = .milliseconds(20)
        let client = try RedisClient(server.url, options)
        for _ in 0..<3 {
            #expect(await client.code() == nil)
            await pause(milliseconds: 60)
        }
        #expect(server.connectionCount == 1 && client.counts.replies == 3)
    }

    @Test func lanesHaveConnectionsOfTheirOwn() async throws {
        let server = try FakeServer { connection in
            connection.serve { $0[0] == "XREAD" ? "" : "+ok\r\n" }
        }
        var options = RedisOptions.patient
        options.oldestReplyLimit = .seconds(1)
        let client = try RedisClient(server.url, options)
        let blocked = Task { () -> RedisError.Code? in
            do throws(RedisError) {
                _ = try await client.send(
                    RESPCommand("XREAD"),
                    within: .seconds(3),
                    lane: .blocking
                )
                return nil
            } catch {
                return error.code
            }
        }
        #expect(await client.code() == nil)
        #expect(await blocked.value == .timedOut)
        // The age of the blocked command did not open a breaker.
        #expect(client.counts.openings == 0)
        #expect(server.connectionCount == 2)
    }

    @Test func waitIsLimitedWhileTheConnectionIsMade() async throws {
        let server = try FakeServer { connection in connection.waitForClose() }
        let client = try RedisClient(server.url)
        #expect(await client.code(within: .milliseconds(20)) == .timedOut)
    }
}
