import RESP
import Testing

@testable import RedisClient

@Suite struct NodeConnectionTests {
    private let address = NodeAddress(7)

    private func connection(
        user: String? = nil,
        name: String = "",
        oldest: UInt64 = 250,
        replies: RESPLimits = RESPLimits()
    ) throws -> NodeConnection {
        let url = try RedisURL(user.map { "redis://\($0)@a" } ?? "redis://a")
        return NodeConnection(
            .init(
                address: address,
                greeting: Greeting(url.credentials, connectionName: name),
                connectNanoseconds: 200,
                oldestReplyNanoseconds: oldest,
                replies: replies
            )
        )
    }

    private func readyConnection(oldest: UInt64 = 250) throws -> NodeConnection {
        var connection = try connection(oldest: oldest)
        connection.begin(now: 0)
        connection.opened()
        connection.wrote(connection.output.count)
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.phase == .ready)
        return connection
    }

    @Test func commandsWaitForTheGreeting() throws {
        var connection = try connection(user: "u:p", name: "n")
        connection.enqueue(Batch("first"), now: 0)
        #expect(connection.isWanted)
        connection.begin(now: 0)
        #expect(!connection.hasOutput)
        connection.opened()
        let greeting =
            "*3\r\n$4\r\nAUTH\r\n$1\r\nu\r\n$1\r\np\r\n"
            + "*3\r\n$6\r\nCLIENT\r\n$7\r\nSETNAME\r\n$1\r\nn\r\n*1\r\n$4\r\nPING\r\n"
        #expect(connection.written() == greeting)
        #expect(connection.receive("+OK\r\n-ERR unknown command\r\n") == nil)
        #expect(connection.phase == .greeting && !connection.hasOutput)
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.phase == .ready && !connection.isWanted)
        #expect(connection.written() == "*2\r\n$4\r\nECHO\r\n$5\r\nfirst\r\n")
        #expect(connection.receive("+done\r\n") == nil)
        #expect(connection.ended() == ["first: +done"])
    }

    @Test func passwordAloneIsThatOfTheDefaultUser() throws {
        var connection = try connection(user: ":p")
        connection.begin(now: 0)
        connection.opened()
        #expect(connection.written() == "*2\r\n$4\r\nAUTH\r\n$1\r\np\r\n*1\r\n$4\r\nPING\r\n")
    }

    @Test(arguments: [
        ("-WRONGPASS invalid\r\n", RedisError.Code.notPermitted),
        ("+OK\r\n-LOADING dataset\r\n", .loading), ("+OK\r\n-NOAUTH no\r\n", .notPermitted),
        ("+OK\r\n-ERR other\r\n", .refused), ("HTTP/1.1 400 Bad\r\n", .misbehaved),
    ])
    func refusedGreetingIsAFailure(replies: String, code: RedisError.Code) throws {
        var connection = try connection(user: "u:p")
        connection.begin(now: 0)
        connection.opened()
        guard case .failed(let error) = connection.receive(replies) else {
            Issue.record("no failure")
            return
        }
        #expect(error.code == code)
        #expect(!error.detail.contains(":p"))
    }

    @Test func userWithoutPingIsServed() throws {
        var connection = try connection(user: "u:p")
        connection.begin(now: 0)
        connection.opened()
        #expect(connection.receive("+OK\r\n-NOPERM no ping\r\n") == nil)
        #expect(connection.phase == .ready)
    }

    @Test func repliesBelongToCommandsInTheirOrder() throws {
        var connection = try readyConnection()
        for (name, count) in [("a", 1), ("b", 3), ("c", 1)] {
            connection.enqueue(Batch(name, count: count), now: 1)
        }
        #expect(connection.receive(":1\r\n:2\r\n:3\r\n") == nil)
        #expect(connection.ended() == ["a: 1"])
        #expect(connection.receive(":4\r") == nil)
        #expect(connection.ended() == [])
        #expect(connection.receive("\n$1\r\nx\r\n") == nil)
        #expect(connection.ended() == ["b: 2 3 4", "c: $x"])
        #expect(!connection.isOwed)
    }

    @Test func connectionIsLeftAfterItsLastReply() throws {
        var connection = try readyConnection()
        connection.enqueue(Batch("a"), now: 1)
        connection.leave()
        connection.enqueue(Batch("b"), now: 1)
        #expect(connection.written().hasSuffix("$1\r\na\r\n"))
        #expect(!connection.isLeft && connection.isWanted)
        #expect(connection.receive(":1\r\n") == nil)
        #expect(connection.ended() == ["a: 1"])
        #expect(connection.isLeft)
        connection.close()
        connection.begin(now: 2)
        connection.opened()
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.written().hasSuffix("$1\r\nb\r\n"))
        #expect(!connection.isLeft)
    }

    @Test func partOfTheOutputIsWritten() throws {
        var connection = try readyConnection()
        connection.enqueue(Batch("a"), now: 1)
        let all = connection.output.count
        connection.wrote(5)
        #expect(connection.hasOutput && connection.outputStart == 5)
        connection.enqueue(Batch("b"), now: 1)
        connection.wrote(all - 5)
        #expect(connection.written() == "*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n")
        #expect(connection.output.isEmpty && connection.outputStart == 0)
    }

    @Test func sentOutputIsNotKept() throws {
        var connection = try readyConnection()
        for number in 0..<2_000 {
            connection.enqueue(Batch("\(number)", count: 10), now: 1)
            // The server never has the last byte.
            connection.wrote(connection.output.count - connection.outputStart - 1)
            #expect(connection.output.count <= 65 << 10)
        }
        #expect(connection.written() == "\n")
    }

    @Test func lateCommandIsNotSent() throws {
        var connection = try readyConnection()
        connection.enqueue(Batch("a", deadline: 9), now: 5)
        #expect(connection.written().hasSuffix("a\r\n"))
        connection.enqueue(Batch("late", deadline: 6), now: 6)
        #expect(!connection.hasOutput && connection.ended() == ["late: timedOut"])
        #expect(connection.timePassed(now: 6) == nil)
        #expect(connection.receive("+x\r\n") == nil)
        #expect(connection.ended() == ["a: +x"])
    }

    @Test func commandThatBecameLateInTheGreetingIsNotSent() throws {
        var connection = try connection()
        connection.begin(now: 0)
        connection.enqueue(Batch("late", deadline: 1), now: 0)
        connection.enqueue(Batch("b"), now: 0)
        connection.opened()
        connection.wrote(connection.output.count)
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.ended() == ["late: timedOut"])
        #expect(connection.written() == "*2\r\n$4\r\nECHO\r\n$1\r\nb\r\n")
    }

    @Test func replyBehindTheGreetingIsAFailure() throws {
        var connection = try connection()
        connection.enqueue(Batch("a"), now: 0)
        connection.begin(now: 0)
        connection.opened()
        guard case .failed(let error) = connection.receive("+PONG\r\n+x\r\n") else {
            Issue.record("no failure")
            return
        }
        #expect(error.code == .misbehaved)
        connection.fail(error)
        #expect(connection.ended() == ["a: misbehaved"])
    }

    @Test func replyToNoCommandIsAFailure() throws {
        var connection = try readyConnection()
        guard case .failed(let error) = connection.receive("+OK\r\n") else {
            Issue.record("no failure")
            return
        }
        #expect(error.code == .misbehaved)
    }

    @Test func lateReplyFailsEveryCommand() throws {
        var connection = try readyConnection()
        connection.enqueue(Batch("a", deadline: 100), now: 1)
        connection.enqueue(Batch("b", deadline: 50), now: 2)
        connection.enqueue(Batch("c"), now: 3)
        #expect(connection.nextMoment == 50)
        #expect(connection.timePassed(now: 49) == nil)
        guard case .failed(let error) = connection.timePassed(now: 50) else {
            Issue.record("no failure")
            return
        }
        #expect(error.code == .timedOut)
        connection.fail(error)
        #expect(connection.ended() == ["a: timedOut", "b: timedOut", "c: timedOut"])
        #expect(connection.phase == .idle && connection.nextMoment == .max)
    }

    @Test func oldestReplyCountsAsHung() throws {
        var connection = try readyConnection(oldest: 250)
        connection.enqueue(Batch("a", deadline: 9_000), now: 10)
        #expect(connection.nextMoment == 260)
        #expect(connection.timePassed(now: 259) == nil)
        guard case .hung = connection.timePassed(now: 260) else {
            Issue.record("not hung")
            return
        }
        var patient = try readyConnection(oldest: .max)
        patient.enqueue(Batch("a", deadline: 9_000), now: 10)
        #expect(patient.nextMoment == 9_000)
        #expect(patient.timePassed(now: 8_999) == nil)
    }

    @Test func waitingCommandsExpireAlone() throws {
        var connection = try connection()
        connection.begin(now: 0)
        connection.enqueue(Batch("a", deadline: 30), now: 0)
        connection.enqueue(Batch("b", deadline: 900), now: 0)
        #expect(connection.timePassed(now: 30) == nil)
        #expect(connection.ended() == ["a: timedOut"])
        connection.opened()
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.receive("+x\r\n") == nil)
        #expect(connection.ended() == ["b: +x"])
    }

    @Test func connectionHasALimit() throws {
        for isOpened in [false, true] {
            var connection = try connection()
            connection.begin(now: 5)
            if isOpened { connection.opened() }
            #expect(connection.nextMoment == 205)
            #expect(connection.timePassed(now: 204) == nil)
            guard case .failed(let error) = connection.timePassed(now: 205) else {
                Issue.record("no failure")
                continue
            }
            #expect(error.code == .unreachable)
        }
    }

    @Test func nothingIsLeftOfAClosedConnection() throws {
        var connection = try readyConnection()
        connection.enqueue(Batch("a", count: 2), now: 1)
        #expect(connection.receive(":1\r\n$5\r\nab") == nil)
        connection.fail(RedisError(.cut, detail: ""))
        #expect(connection.ended() == ["a: cut"])
        connection.begin(now: 9)
        connection.opened()
        #expect(connection.written() == "*1\r\n$4\r\nPING\r\n")
        connection.enqueue(Batch("b"), now: 9)
        #expect(connection.receive("+PONG\r\n") == nil)
        #expect(connection.receive("+y\r\n") == nil)
        #expect(connection.ended() == ["b: +y"])
    }
}

extension NodeConnection {
    fileprivate mutating func receive(_ text: String) -> Closing? {
        received(Array(text.utf8).span, now: 1)
    }

    /// Takes the whole output.
    fileprivate mutating func written() -> String {
        let bytes = output[outputStart...]
        wrote(bytes.count)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Takes what is finished: the names, each with its replies or its error.
    fileprivate mutating func ended() -> [String] {
        takeFinished().map { one in
            switch one.outcome {
            case .success(let values):
                one.batch.name + ": " + values.map(\.short).joined(separator: " ")
            case .failure(let error): "\(one.batch.name): \(error.code)"
            }
        }
    }
}

extension RESPValue {
    fileprivate var short: String {
        switch self {
        case .simple(let text): "+\(text)"
        case .integer(let number): "\(number)"
        case .bulk(let bytes): "$" + String(decoding: bytes, as: UTF8.self)
        default: "\(self)"
        }
    }
}
