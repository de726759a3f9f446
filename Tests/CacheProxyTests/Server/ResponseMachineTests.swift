import Testing

@testable import CacheProxy

/// The machine of a response: how it is delimited, and how it ends.
@Suite struct ResponseMachineTests {
    static func machine(_ text: String) -> ResponseMachine {
        var parser = RequestParser()
        let bytes = Array(text.utf8)
        _ = parser.parse(bytes.span, WireLimits())
        return ResponseMachine(parser.head)
    }

    static let get = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
    static let oldGet = "GET / HTTP/1.0\r\n\r\n"
    static let head = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n"

    enum Act: Sendable {
        case chunk(Int)
        case end
        case fail
    }

    @Test(
        arguments: [
            (get, 5, [Act.chunk(2), .chunk(3), .end], ["send", "send", "nothing"]),
            (get, 5, [.chunk(2), .end], ["send", "cut"]),
            (get, 5, [.chunk(2), .fail], ["send", "cut"]),
            (get, 5, [.chunk(7), .end], ["sendLast(5)", "nothing"]),
            (get, 0, [.end], ["nothing"]),
            (get, nil, [.chunk(2), .end], ["sendAsChunk", "sendLastChunk"]),
            (get, nil, [.chunk(2), .fail], ["sendAsChunk", "cut"]),
            (oldGet, nil, [.chunk(2), .end], ["send", "nothing"]),
            (oldGet, nil, [.chunk(2), .fail], ["send", "reset"]),
            (oldGet, 2, [.chunk(2), .end], ["send", "nothing"]),
            (head, 5, [.chunk(2), .end], ["drop", "nothing"]),
        ] as [(String, Int?, [Act], [String])]
    )
    func everyResponseEndsAsItsFramingPromises(_ row: (String, Int?, [Act], [String])) {
        var machine = Self.machine(row.0)
        _ = machine.begin(status: 200, bodyCount: row.1)
        let actions = row.2.map { act in
            switch act {
            case .chunk(let count): "\(machine.chunk(count))"
            case .end: "\(machine.end())"
            case .fail: "\(machine.fail())"
            }
        }
        #expect(actions == row.3)
    }

    @Test func failureBeforeTheHeadIsAnswered() {
        var machine = Self.machine(Self.get)
        #expect(machine.fail() == .answerError && !machine.hasBegun)
        #expect(machine.begin(status: 502, bodyCount: 4) == .length(4))
        machine.endedWithHead()
        #expect(machine.hasBegun && !machine.isRunning)
    }

    @Test(
        arguments: [
            (get, 5, true, ResponseHeadWriter.Persistence.goesOn), (get, 5, false, .ends),
            (oldGet, 5, false, .ends),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", 5, true, .goesOnSaidSo),
            ("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n", nil, false, .ends),
        ] as [(String, Int?, Bool, ResponseHeadWriter.Persistence)]
    )
    func persistenceFollowsRequestAndFraming(
        _ row: (String, Int?, Bool, ResponseHeadWriter.Persistence)
    ) {
        var machine = Self.machine(row.0)
        _ = machine.begin(status: 200, bodyCount: row.1)
        #expect(machine.persistence(goesOn: machine.mayPersist && row.2) == row.3)
    }

    @Test func contentIsAskedForOnceAndOnlyBeforeTheResponse() {
        let text =
            "PUT / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
        var machine = Self.machine(text)
        #expect(machine.awaitsContinue)
        #expect(machine.contentWanted() && !machine.contentWanted())
        machine = Self.machine(text)
        _ = machine.begin(status: 413, bodyCount: 0)
        #expect(!machine.contentWanted() && machine.awaitsContinue)
    }
}
