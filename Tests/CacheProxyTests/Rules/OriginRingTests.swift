import CacheEngine
import CacheTestSupport
import Testing

@testable import CacheProxy

@Suite struct OriginRingTests {
    static let addresses = ["http://a", "http://b", "http://c"].compactMap { OriginAddress($0) }

    @Test func membersTakeTurns() {
        var ring = OriginRing(Self.addresses)
        let chosen = (0..<6).compactMap { _ in ring.choose(now: 0)?.description }
        #expect(chosen == ["http://a", "http://b", "http://c", "http://a", "http://b", "http://c"])
    }

    @Test func memberThatKeepsFailingIsLeftOutAndProbedOnce() {
        var ring = OriginRing(Self.addresses)
        let bad = Self.addresses[0]
        for _ in 0..<OriginRing.failuresMax { ring.failed(bad, now: 0) }
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 999) != bad })
        let later = (0..<9).map { _ in ring.choose(now: 1_000) }
        #expect(later.count { $0 == bad } == 1)
        ring.failed(bad, now: 1_000)
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 2_999) != bad })
        #expect((0..<3).contains { _ in ring.choose(now: 3_000) == bad })
        ring.answered(bad)
        #expect((0..<3).contains { _ in ring.choose(now: 3_000) == bad })
    }

    @Test func pauseIsBounded() {
        var ring = OriginRing([Self.addresses[0]])
        for round in 0..<100 { ring.failed(Self.addresses[0], now: Int64(round)) }
        #expect(ring.members[0].downUntil == 99 + OriginRing.backOffMillisecondsMax)
    }

    @Test func withAllDownOneIsAskedNevertheless() {
        var ring = OriginRing(Self.addresses)
        for address in Self.addresses {
            for _ in 0..<OriginRing.failuresMax { ring.failed(address, now: 0) }
        }
        #expect(ring.choose(now: 1) != nil)
        #expect(ring.choose(now: 1, excluding: Set(Self.addresses)) == nil)
    }

    @Test func replacedMembersKeepTheirHealth() {
        var ring = OriginRing(Self.addresses)
        for _ in 0..<OriginRing.failuresMax { ring.failed(Self.addresses[1], now: 0) }
        ring.replace([Self.addresses[1], Self.addresses[2]])
        #expect(ring.members.map { $0.downUntil == nil } == [false, true])
        ring.replace([])
        #expect(ring.choose(now: 0) == nil)
    }

    @Test(arguments: UInt64(0)..<64)
    func everyChoiceIsAMemberAndNobodyIsForgotten(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var ring = OriginRing(Self.addresses)
        var now: Int64 = 0
        var lastChosen: [OriginAddress: Int64] = [:]
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...500, using: &random)
            guard let chosen = ring.choose(now: now) else {
                Issue.record("Nobody was chosen")
                return
            }
            lastChosen[chosen] = now
            switch Int.random(in: 0..<4, using: &random) {
            case 0: ring.failed(chosen, now: now)
            case 1: ring.gaveUp(chosen)
            default: ring.answered(chosen)
            }
        }
        // However bad an origin has been, it is tried again within the longest pause and a turn.
        for address in Self.addresses {
            #expect(now - (lastChosen[address] ?? 0) <= OriginRing.backOffMillisecondsMax + 5_000)
        }
    }

    @Test(arguments: [
        ("http://x/a?b", "http://o:1/a?b"), ("https://x:443//a", "http://o:1//a"),
        ("http://x?b", "http://o:1?b"), ("http://x/http://y/", "http://o:1/http://y/"),
    ])
    func targetMovesToTheOriginUnchanged(_ row: (String, String)) {
        #expect(OriginAddress("http://o:1/")?.url(for: row.0) == row.1)
    }

    @Test(arguments: [
        "", "x", "ftp://x", "http://", "http://a/b", "http://a?b", "http://a b", "http://u@a",
        "http://:80",
    ])
    func whatIsNoOriginIsRefused(_ text: String) {
        #expect(OriginAddress(text) == nil)
    }

    @Test func onlyAFailedConnectionMovesARequestToAnotherOrigin() {
        func isUnreached(_ code: CacheError.Code, _ detail: String) -> Bool {
            OriginPool.isUnreached(CacheError(code, detail: detail))
        }
        #expect(isUnreached(.originFailed, "Failed to connect to a port 1 after 0 ms: refused"))
        #expect(isUnreached(.originFailed, "Could not resolve host: a"))
        #expect(!isUnreached(.originFailed, "Recv failure: Connection reset by peer"))
        #expect(isUnreached(.originTimedOut, "Connection timed out after 10001 milliseconds"))
        #expect(!isUnreached(.originTimedOut, "Operation timed out after 10001 milliseconds"))
        #expect(!isUnreached(.originTimedOut, "Failed to connect"))
        #expect(!isUnreached(.originFailed, "Sent, but: Failed to connect to a port 1"))
        #expect(!OriginPool.isUnreached(CancellationError()))
    }
}
