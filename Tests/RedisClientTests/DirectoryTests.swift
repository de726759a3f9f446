import RESP
import Testing

@testable import RedisClient

@Suite struct DirectoryTests {
    private let second = Directory.refreshNanoseconds

    private func directory(_ text: String) throws -> Directory { Directory(try RedisURL(text)) }

    private static func slots(_ ranges: (Int64, Int64, String, UInt16)...) -> RESPValue {
        .array(
            ranges.map { first, last, host, port in
                let server = RESPValue.array([
                    .bulk(Array(host.utf8)), .integer(Int64(port)), .bulk([0x61]),
                ])
                return .array([.integer(first), .integer(last), server, server])
            }
        )
    }

    @Test(
        arguments: [
            ("MOVED 3999 127.0.0.1:6381", .moved(slot: 3999, to: NodeAddress(6381))),
            ("ASK 0 [::1]:70@1", nil), ("ASK 16383 127.0.0.1:70", .ask(to: NodeAddress(70))),
            ("MOVED 16384 a:1", nil), ("MOVED -1 a:1", nil), ("MOVED 1 a:0", nil),
            ("MOVED 1 a", nil),
            ("MOVED 1", nil), ("MOVED 1 a:65536", nil), ("ERR 1 a:1", nil),
            ("MOVED 7 :6381", .moved(slot: 7, to: NodeAddress(6381))),
            ("MOVED 7 127.0.0.1:6381@16381", .moved(slot: 7, to: NodeAddress(6381))),
        ] as [(String, Redirection?)]
    )
    func redirectionIsRead(text: String, redirection: Redirection?) {
        let own = NodeAddress(1)
        if text.contains("[") {
            let target = NodeAddress(host: "[::1]", port: 70)
            #expect(Redirection(.error(text), from: own) == .ask(to: target))
        } else {
            #expect(Redirection(.error(text), from: own) == redirection)
        }
        #expect(Redirection(.simple(text), from: own) == nil)
    }

    @Test func mapHasTheMasterOfEverySlot() throws {
        let reply = Self.slots((0, 99, "a", 1), (100, 199, "b", 2), (200, 200, "a", 1))
        let map = try #require(ClusterMap(reply, from: NodeAddress(9)))
        #expect(map[0]?.host == "a" && map[99]?.host == "a" && map[100]?.host == "b")
        #expect(map[199]?.host == "b" && map[200]?.host == "a" && map[201] == nil)
        #expect(map.masters.count == 2)
    }

    @Test func serverThatKnowsNoAddressIsTheOneThatWasAsked() throws {
        for host in ["", "?"] {
            let map = try #require(ClusterMap(Self.slots((0, 5, host, 77)), from: NodeAddress(9)))
            #expect(map[3] == NodeAddress(77))
        }
    }

    @Test(
        arguments: [
            .array([]), .nilArray, .error("ERR no cluster"), .array([.integer(1)]),
            slots((-1, 5, "a", 1)), slots((0, 16_384, "a", 1)), slots((5, 4, "a", 1)),
            slots((0, 1, "a", 0)), .array([.array([.integer(0), .integer(1)])]),
        ] as [RESPValue]
    )
    func otherRepliesAreNoMap(reply: RESPValue) {
        #expect(ClusterMap(reply, from: NodeAddress(9)) == nil)
    }

    @Test func oneServerIsNeverAskedForOthers() throws {
        var directory = try directory("redis://a:1")
        #expect(directory.server(for: 7) == NodeAddress(host: "a", port: 1))
        #expect(directory.wanted(now: 0) == nil)
        #expect(directory.failed(NodeAddress(host: "a", port: 1), now: 0) == nil)
    }

    @Test func clusterIsAskedOnceASecondByWhoRedirected() throws {
        var directory = try directory("redis-cluster://a:1")
        let own = NodeAddress(host: "a", port: 1)
        #expect(directory.wanted(now: 0) == .init(address: own, isSentinel: false))
        // One question is under way.
        #expect(directory.wanted(now: 2 * second) == nil)
        directory.slotsAnswered(Self.slots((0, 16_383, "b", 2)), by: own)
        let other = NodeAddress(host: "b", port: 2)
        #expect(directory.server(for: 7) == other)
        let moved = Redirection.moved(slot: 7, to: NodeAddress(host: "c", port: 3))
        #expect(directory.redirected(moved, by: other, now: second - 1) == nil)
        // The slot moves at once.
        #expect(directory.server(for: 7)?.host == "c")
        #expect(directory.server(for: 8)?.host == "b")
        let question = directory.redirected(moved, by: other, now: second)
        #expect(question == .init(address: other, isSentinel: false))
    }

    @Test func askMovesNoSlot() throws {
        var directory = try directory("redis-cluster://a:1")
        let ask = Redirection.ask(to: NodeAddress(host: "c", port: 3))
        #expect(directory.redirected(ask, by: NodeAddress(1), now: 0) == nil)
        #expect(directory.server(for: 7)?.host == "a")
    }

    @Test func anotherServerIsAskedAfterAFailure() throws {
        var directory = try directory("redis://a:1,b:2")
        let start = directory.wanted(now: 0)
        let first = try #require(start).address
        directory.slotsAnswered(nil, by: first)
        let other = directory.wanted(now: second)
        let next = try #require(other).address
        #expect(next != first)
        directory.slotsAnswered(Self.slots((0, 16_383, "c", 3)), by: next)
        let dead = NodeAddress(host: "c", port: 3)
        let last = directory.failed(dead, now: 2 * second)
        let question = try #require(last)
        #expect(question.address != dead)
        // A damaged reply changes nothing.
        directory.slotsAnswered(.array([]), by: question.address)
        #expect(directory.server(for: 7) == dead)
    }

    @Test func masterIsUsedOnceItConfirmsItsRole() throws {
        var directory = try directory("redis-sentinel://a:1,b:2#m")
        #expect(directory.server(for: 7) == nil)
        #expect(directory.masterName == "m")
        let sentinel = NodeAddress(host: "b", port: 2)
        _ = directory.wanted(now: 0)
        let reply = RESPValue.array([.bulk(Array("c".utf8)), .bulk(Array("30".utf8))])
        let answer = directory.sentinelAnswered(.success(reply), by: sentinel)
        let named = try #require(answer)
        #expect(named == NodeAddress(host: "c", port: 30))
        #expect(directory.server(for: nil) == nil)
        directory.roleAnswered(.success(.array([.bulk(Array("slave".utf8))])), by: named)
        #expect(directory.server(for: nil) == nil)
        #expect(directory.lastFailure?.code == .readOnly)
        #expect(directory.wanted(now: second) == .init(address: sentinel, isSentinel: true))
        #expect(directory.sentinelAnswered(.success(reply), by: sentinel) == named)
        let master = RESPValue.array([.bulk(Array("master".utf8)), .integer(5)])
        directory.roleAnswered(.success(master), by: named)
        #expect(directory.server(for: 9) == named)
        #expect(directory.wanted(now: 2 * second) == nil)
        let question = directory.failed(named, now: 2 * second)
        #expect(question?.isSentinel == true)
    }

    @Test(
        arguments: [
            nil, .nilArray, .array([]), .array([.bulk([0x63]), .bulk([0x78])]),
            .error("ERR no such master"),
        ] as [RESPValue?]
    )
    func sentinelWithoutAMasterEndsTheQuestion(reply: RESPValue?) throws {
        var directory = try directory("redis-sentinel://a#m")
        _ = directory.wanted(now: 0)
        #expect(directory.lastFailure == nil)
        let late = RedisError(.timedOut, detail: "late")
        let outcome: Result<RESPValue, RedisError> = reply.map { .success($0) } ?? .failure(late)
        #expect(directory.sentinelAnswered(outcome, by: NodeAddress(1)) == nil)
        #expect(directory.lastFailure?.code == (reply == nil ? .timedOut : .refused))
        #expect(directory.wanted(now: second) != nil)
    }

    /// The next one may be up, and a purge waits for it.
    @Test func sentinelThatIsOutIsNoCauseBeforeAllAreAsked() throws {
        var directory = try directory("redis-sentinel://a:1,b:2#m")
        let outcome: Result<RESPValue, RedisError> = .failure(.init(.unreachable, detail: "out"))
        for (number, code) in [nil, RedisError.Code.unreachable].enumerated() {
            let question = directory.wanted(now: UInt64(number) * second)
            let sentinel = try #require(question).address
            #expect(directory.sentinelAnswered(outcome, by: sentinel) == nil)
            #expect(directory.lastFailure?.code == code)
        }
    }
}
