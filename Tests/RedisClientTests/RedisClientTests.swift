import CacheTestSupport
import Platform
import RESP
import Synchronization
import Testing

@testable import RedisClient

/// The commands and replies of callers, against a scripted server.
@Suite(.timeLimit(.minutes(1))) struct RedisClientTests {
    @Test func everyCallerGetsItsOwnReply() async throws {
        let server = try FakeServer.echo()
        let client = try RedisClient(server.url)
        try await withThrowingTaskGroup(of: Void.self) { tasks in
            for caller in 0..<64 {
                tasks.addTask {
                    for number in 0..<50 {
                        let word = "\(caller).\(number)"
                        let reply = try await client.send(RESPCommand("ECHO", key: nil, word))
                        #expect(reply == .simple(word))
                    }
                }
            }
            try await tasks.waitForAll()
        }
        #expect(client.counts.replies == 3_200)
        #expect(client.counts.failures == 0)
        #expect(server.connectionCount == 1)
    }

    @Test func commandsSentTogetherAreAnsweredInOrder() async throws {
        let server = try FakeServer { connection in
            connection.serve { $0.last == "5" ? "-ERR five\r\n" : "+\($0.last ?? "")\r\n" }
        }
        let client = try RedisClient(server.url)
        let commands = (0..<1_000).map { RESPCommand("ECHO", key: nil, "\($0)") }
        let replies = try await client.together(commands, by: [])
        #expect(replies.count == 1_000)
        for (number, reply) in replies.enumerated() {
            #expect(reply == (number == 5 ? .error("ERR five") : .simple("\(number)")))
        }
    }

    @Test func noCommandsAreNoExchange() async throws {
        let server = try FakeServer { connection in connection.serve { _ in "+OK\r\n" } }
        let client = try RedisClient(server.url)
        async let nothing = client.together([], by: [])
        #expect(await client.code() == nil)
        #expect(try await nothing == [])
        #expect(server.connectionCount == 1 && client.counts.failures == 0)
    }

    /// Each pair of megabytes fills the socket's buffers, so that output waits.
    @Test func largeCommandsAndRepliesAreWhole() async throws {
        let server = try FakeServer { connection in
            connection.serve { "$\($0[1].utf8.count)\r\n\($0[1])\r\n" }
        }
        let client = try RedisClient(server.url)
        let words = (0..<6).map { String(repeating: "\($0)", count: 4 << 20) }
        let commands = words.map { RESPCommand("ECHO", key: nil, $0) }
        let replies = try await client.together(commands, by: [])
        #expect(replies.map(\.text) == words)
    }

    @Test func errorReplyIsAnErrorOfTheCaller() async throws {
        let server = try FakeServer { connection in connection.serve { "-\($0[1])\r\n" } }
        let client = try RedisClient(server.url)
        for (text, code) in [
            ("ERR\u{7}x", RedisError.Code.refused), ("LOADING x", .loading),
            ("READONLY x", .readOnly), ("CLUSTERDOWN x", .clusterDown), ("TRYAGAIN x", .tryAgain),
            ("NOPERM x", .notPermitted), ("MOVED 1 127.0.0.1:1", .refused),
        ] {
            let error = await #expect(throws: RedisError.self) {
                try await client.send(RESPCommand("X", key: nil, text))
            }
            #expect(error?.code == code)
            #expect(error?.detail.contains("\u{7}") == false)
        }
        // A server that is loading, or a replica, is left, once a second.
        #expect((2...3).contains(server.connectionCount))
    }

    @Test func commandsBeyondTheLimitAreRefusedAtOnce() async throws {
        let received = Mutex(0)
        let server = try FakeServer { connection in
            connection.serve { _ in
                received.withLock { $0 += 1 }
                return ""
            }
        }
        var options = RedisOptions.patient
        options.outstandingCountMax = 10
        let client = try RedisClient(server.url, options)
        let held = Task { () -> RedisError.Code? in
            do throws(RedisError) {
                let commands = (0..<10).map { RESPCommand("GET", key: "\($0)") }
                _ = try await client.together(commands, by: [])
                return nil
            } catch {
                return error.code
            }
        }
        let isFull = await eventually { received.withLock { $0 } == 10 }
        #expect(isFull)
        #expect(await client.code() == .overloaded)
        #expect(client.counts.refusedByLimits == 1)
        await client.shutDown()
        #expect(await held.value == .shutDown)
    }

    @Test func cancelledCallerLeavesAndTheOrderStays() async throws {
        let gate = Mutex(false)
        let server = try FakeServer { connection in
            connection.serve { words in
                while words[1] == "first", !gate.withLock({ $0 }) { poll(nil, 0, 1) }
                return "+\(words[1])\r\n"
            }
        }
        let client = try RedisClient(server.url)
        let first = Task { await client.code(of: RESPCommand("GET", key: "first")) }
        let hasConnection = await eventually { server.connectionCount == 1 }
        #expect(hasConnection)
        first.cancel()
        #expect(await first.value == .cancelled)
        async let second = client.send(RESPCommand("GET", key: "second"))
        gate.withLock { $0 = true }
        #expect(try await second == .simple("second"))
        let cancelled = Task {
            withUnsafeCurrentTask { $0?.cancel() }
            return await client.code()
        }
        #expect(await cancelled.value == .cancelled)
    }

    @Test func shutDownFailsWhatIsOpenAndClosesEverything() async throws {
        let server = try FakeServer { connection in connection.serve { _ in "" } }
        let client = try RedisClient(server.url)
        let open = Task { await client.code() }
        let hasConnection = await eventually { server.openCount == 1 }
        #expect(hasConnection)
        await client.shutDown()
        #expect(await open.value == .shutDown)
        #expect(await client.code() == .shutDown)
        await client.shutDown()
        let isClosed = await eventually { server.openCount == 0 }
        #expect(isClosed)
    }

    @Test func droppedClientClosesItsConnections() async throws {
        let server = try FakeServer.echo()
        for _ in 0..<20 {
            let client = try RedisClient(server.url)
            _ = try await client.send(RESPCommand("ECHO", key: nil, "a"))
        }
        let isClosed = await eventually { server.openCount == 0 }
        #expect(isClosed)
        #expect(server.connectionCount == 20)
    }
}
