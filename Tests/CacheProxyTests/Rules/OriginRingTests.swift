import CacheEngine
import CacheTestSupport
import CurlOrigin
import Platform
import Synchronization
import Testing

@testable import CacheProxy

@Suite struct OriginRingTests {
    static let addresses = ["http://a", "http://b", "http://c"].compactMap { OriginAddress($0) }

    /// A ring with one member out of reach, which is probed since second 1.
    private static func ringThatProbes(_ bad: OriginAddress) -> OriginRing {
        var ring = OriginRing(addresses)
        ring.unreached(bad, now: 0)
        #expect(ring.takeProbes(now: 1_000) == [bad])
        return ring
    }

    @Test func membersTakeTurns() {
        var ring = OriginRing(Self.addresses)
        let chosen = (0..<6).compactMap { _ in ring.choose(now: 0)?.address.description }
        #expect(chosen == ["http://a", "http://b", "http://c", "http://a", "http://b", "http://c"])
    }

    @Test func memberThatKeepsFailingIsLeftOutUntilAProbeAndATrialSucceed() {
        var ring = OriginRing(Self.addresses)
        let bad = Self.addresses[0]
        for _ in 0..<OriginRing.failuresMax { ring.failed(bad, now: 0) }
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 0)?.address != bad })
        #expect(ring.nextProbe == OriginRing.backOffMillisecondsMin)
        #expect(ring.takeProbes(now: 999).isEmpty)
        #expect(ring.takeProbes(now: 1_000) == [bad])
        // Until the probe ends, no request goes to the origin and no second probe begins.
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 0)?.address != bad })
        #expect(ring.takeProbes(now: 1_000).isEmpty && ring.nextProbe == nil)
        ring.probeConnected(bad)
        let trials = (0..<9).compactMap { _ in ring.choose(now: 0) }.filter { $0.address == bad }
        #expect(trials.count == 1)
        for trial in trials { ring.gaveUp(trial) }
        #expect((0..<9).count { _ in ring.choose(now: 0)?.address == bad } == 1)
        ring.failed(bad, now: 1_000)
        #expect(ring.nextProbe == 3_000)
        #expect(ring.takeProbes(now: 3_000) == [bad])
        ring.probeConnected(bad)
        #expect((0..<3).contains { _ in ring.choose(now: 0)?.address == bad })
        ring.answered(bad)
        #expect((0..<9).count { _ in ring.choose(now: 0)?.address == bad } == 3)
        ring.failed(bad, now: 4_000)
        #expect(ring.nextProbe == nil)
    }

    /// It was sent before the origin went down, and its client left while the trial was under way.
    @Test func olderRequestEndsNoTrial() throws {
        var ring = OriginRing(Self.addresses)
        let bad = Self.addresses[1]
        let choices = (0..<3).compactMap { _ in ring.choose(now: 0) }
        let older = try #require(choices.first { $0.address == bad })
        for _ in 0..<OriginRing.failuresMax { ring.failed(bad, now: 0) }
        #expect(ring.takeProbes(now: 1_000) == [bad])
        ring.probeConnected(bad)
        let chosen = (0..<3).compactMap { _ in ring.choose(now: 1_000) }
        let trial = try #require(chosen.first { $0.address == bad })
        ring.gaveUp(older)
        #expect((0..<10).allSatisfy { _ in ring.choose(now: 1_000)?.address != bad })
        ring.gaveUp(trial)
        #expect((0..<10).contains { _ in ring.choose(now: 1_000)?.address == bad })
    }

    @Test func trialThatLastsTooLongIsFollowedByAnother() {
        var ring = OriginRing(Self.addresses)
        let bad = Self.addresses[0]
        for _ in 0..<OriginRing.failuresMax { ring.failed(bad, now: 0) }
        #expect(ring.takeProbes(now: 1_000) == [bad])
        ring.probeConnected(bad)
        #expect((0..<9).count { _ in ring.choose(now: 2_000)?.address == bad } == 1)
        let end = 2_000 + OriginRing.backOffMillisecondsMax
        #expect((0..<9).allSatisfy { _ in ring.choose(now: end - 1)?.address != bad })
        #expect((0..<9).count { _ in ring.choose(now: end)?.address == bad } == 1)
    }

    @Test func memberOutOfReachIsLeftOutAtOnceAndBackWithTheFirstProbe() {
        var ring = OriginRing(Self.addresses)
        let bad = Self.addresses[0]
        ring.unreached(bad, now: 0)
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 0)?.address != bad })
        // A concurrent failure of the same origin changes nothing.
        ring.unreached(bad, now: 500)
        #expect(ring.nextProbe == 1_000)
        #expect(ring.takeProbes(now: 1_000) == [bad])
        ring.probeFailed(bad, now: 1_100)
        #expect(ring.nextProbe == 3_100)
        #expect(ring.takeProbes(now: 3_100) == [bad])
        ring.probeConnected(bad)
        #expect((0..<9).count { _ in ring.choose(now: 0)?.address == bad } == 3)
        #expect(ring.nextProbe == nil)
    }

    @Test func probeWithoutAResultIsRepeatedAfterTheShortestPause() {
        let bad = Self.addresses[0]
        var ring = Self.ringThatProbes(bad)
        ring.probeGaveUp(bad, now: 1_100)
        #expect((0..<9).allSatisfy { _ in ring.choose(now: 0)?.address != bad })
        #expect(ring.nextProbe == 2_100 && ring.takeProbes(now: 2_100) == [bad])
        ring.probeFailed(bad, now: 2_100)
        // The pause has grown once.
        #expect(ring.nextProbe == 4_100)
    }

    @Test func probeThatFailsAfterAnAnswerTakesNothingDown() {
        let bad = Self.addresses[0]
        var ring = Self.ringThatProbes(bad)
        // A request that was sent before the origin went down.
        ring.answered(bad)
        ring.probeFailed(bad, now: 1_100)
        #expect(ring.nextProbe == nil)
        #expect((0..<9).count { _ in ring.choose(now: 0)?.address == bad } == 3)
    }

    @Test func requestThatFailsDuringAProbeDoesNotEndTheProbe() {
        let bad = Self.addresses[0]
        var ring = Self.ringThatProbes(bad)
        ring.unreached(bad, now: 1_050)
        #expect(ring.takeProbes(now: 9_000).isEmpty)
        ring.probeConnected(bad)
        #expect(ring.nextProbe == nil)
    }

    @Test func pauseIsBounded() {
        var ring = OriginRing([Self.addresses[0]])
        var now: Int64 = 0
        ring.unreached(Self.addresses[0], now: now)
        for _ in 0..<100 {
            let next = ring.nextProbe ?? 0
            #expect(next - now <= OriginRing.backOffMillisecondsMax)
            now = next
            #expect(ring.takeProbes(now: now) == Self.addresses.prefix(1).map { $0 })
            ring.probeFailed(Self.addresses[0], now: now)
        }
        #expect(ring.nextProbe == now + OriginRing.backOffMillisecondsMax)
    }

    @Test func withAllDownOneIsAskedNevertheless() {
        var ring = OriginRing(Self.addresses)
        for address in Self.addresses {
            for _ in 0..<OriginRing.failuresMax { ring.failed(address, now: 0) }
        }
        #expect(ring.choose(now: 0) != nil)
        #expect(ring.choose(excluding: Set(Self.addresses), now: 0) == nil)
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
    func everyChoiceIsAMemberAndEveryMemberIsTriedAgain(_ seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var ring = OriginRing(Self.addresses)
        var now: Int64 = 0
        var lastLookedAt: [OriginAddress: Int64] = [:]
        for _ in 0..<2_000 {
            now += Int64.random(in: 0...500, using: &random)
            guard let chosen = ring.choose(now: now) else {
                Issue.record("Nobody was chosen")
                return
            }
            lastLookedAt[chosen.address] = now
            switch Int.random(in: 0..<5, using: &random) {
            case 0: ring.failed(chosen.address, now: now)
            case 1: ring.gaveUp(chosen)
            case 2: ring.unreached(chosen.address, now: now)
            default: ring.answered(chosen.address)
            }
            for probed in ring.takeProbes(now: now) {
                lastLookedAt[probed] = now
                if Bool.random(using: &random) {
                    ring.probeConnected(probed)
                } else {
                    ring.probeFailed(probed, now: now)
                }
            }
        }
        // A failing origin is tried again within the longest pause plus 5 s.
        for address in Self.addresses {
            #expect(now - (lastLookedAt[address] ?? 0) <= OriginRing.backOffMillisecondsMax + 5_000)
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
    func invalidOriginIsRefused(_ text: String) {
        #expect(OriginAddress(text) == nil)
    }

    /// An origin that breaks off every exchange and counts them.
    private actor BrokenOrigin: Origin {
        private(set) var count = 0

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            count += 1
            throw CacheError(.originFailed, detail: "Recv failure: Connection reset by peer")
        }
    }

    @Test func possiblySentRequestIsNotSentToAnotherOrigin() async {
        let upstream = BrokenOrigin()
        let pool = OriginPool(Self.addresses, name: "me", upstream: upstream)
        await #expect(throws: CacheError.self) {
            _ = try await pool.fetch(OriginRequest(url: "http://x/"))
        }
        #expect(await upstream.count == 1)
    }

    /// An origin that cannot be reached for its first three requests.
    private actor LateOrigin: Origin {
        private var count = 0

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            count += 1
            guard count <= 3 else { return OriginResponse(status: 204) }
            throw CacheError(.originUnreachable, detail: "Cannot connect to a: attempt \(count)")
        }
    }

    @Test func originThatGoesDownAndAnswersAgainIsReportedOnce() async {
        let lines = Mutex<[String]>([])
        let address = Self.addresses[0]
        let pool = OriginPool([address], name: "me", upstream: LateOrigin()) { line in
            lines.withLock { $0.append(line) }
        }
        for _ in 0..<6 { _ = try? await pool.fetch(OriginRequest(url: "http://x/")) }
        let told = lines.withLock { $0 }
        #expect(
            told == [
                "Origin \(address): Cannot connect to a: attempt 1",
                "Origin \(address): it answers again",
            ]
        )
        pool.shutDown()
    }

    /// A client for origins that finds no free socket.
    private struct StarvedOrigin: ConnectingOrigin {
        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            throw LocalLack.ofSocket(code: EMFILE)
        }

        func connect(to url: String) async throws {
            throw LocalLack.ofSocket(code: EMFILE)
        }
    }

    @Test func faultOfThisMachineCountsAgainstNoOrigin() async {
        let lines = Mutex<[String]>([])
        let pool = OriginPool(Self.addresses, name: "me", upstream: StarvedOrigin()) { line in
            lines.withLock { $0.append(line) }
        }
        for _ in 0..<12 {
            await #expect(throws: LocalLack.self) {
                _ = try await pool.fetch(OriginRequest(url: "http://x/"))
            }
        }
        #expect(pool.members.allSatisfy { $0.downUntil == nil })
        let told = lines.withLock { $0 }
        #expect(told.map { $0.hasPrefix("Cannot open a socket to the origin: ") } == [true])
        pool.shutDown()
    }

    @Test func onlyErrorsOfTheOriginCountAgainstItAfterAProbe() {
        for code in [
            CacheError.Code.originUnreachable, .originFailed, .originTimedOut, .originMisbehaved,
        ] {
            #expect(OriginPool.tellsOfOrigin(CacheError(code, detail: "")))
        }
        let waited = CacheError(.deadlineExceeded, detail: "No connection was free")
        let others: [any Error] = [waited, LocalLack.ofSocket(code: EMFILE), CancellationError()]
        #expect(others.allSatisfy { !OriginPool.tellsOfOrigin($0) })
    }

    @Test func onlyAFailedConnectionMovesARequestToAnotherOrigin() {
        for code in [
            CacheError.Code.originFailed, .originTimedOut, .originMisbehaved, .deadlineExceeded,
        ] {
            #expect(!OriginPool.isUnreached(CacheError(code, detail: "Failed to connect to a")))
        }
        #expect(OriginPool.isUnreached(CacheError(.originUnreachable, detail: "")))
        #expect(!OriginPool.isUnreached(CancellationError()))
    }
}
