import CacheEngine
import CacheTestSupport
import Testing

@testable import Simulation

/// Lives of a fleet over a model of Redis; `make simulate SIZE=fleet` runs many more of them.
@Suite struct FleetLifeTests {
    /// R25: no seed of faults violates the promises; a failure prints the command that repeats it.
    @Test(arguments: 0..<4)
    func noFaultViolatesThePromises(part: Int) async {
        let failures = await PlainThread.run {
            (0..<12).map { FleetLife(seed: UInt64(part * 12 + $0)).run() }
                .filter { !$0.problems.isEmpty }
        }
        for failure in failures { Issue.record("\(failure.replay)") }
    }

    @Test(arguments: [2, 7] as [UInt64])
    func sameSeedGivesTheSameLife(seed: UInt64) async {
        let lives = await PlainThread.run { (0..<2).map { _ in FleetLife(seed: seed).run() } }
        #expect(Set(lives.map(\.answers)).count == 1)
    }

    /// The lives reach what they are meant to judge: records, waits, doubts, restored purges.
    @Test func livesMeetEveryFault() async {
        let stories = await PlainThread.run {
            (0..<60).flatMap { seed in
                let life = FleetLife(seed: UInt64(2 * seed), tellsStory: true)
                _ = life.run()
                return life.story
            }
        }
        let story = stories.joined(separator: "\n")
        for event in [
            "fresh from shared", "fresh from disk", "fresh from memory", "revalidated",
            "stale from", "a failover", "has a receipt for nothing", "storm 11",
        ] {
            #expect(story.contains(event), "no life has: \(event)")
        }
    }

    // MARK: The ledger itself

    private static let question = FleetQuestion(
        name: "caller",
        process: 0,
        path: .plain,
        language: "de"
    )

    /// A ledger with one process, and the answer that the origin gave to its first request.
    private static func ledger() -> (FleetLedger, FleetAnswer) {
        let ledger = FleetLedger(
            TestClock(),
            judgesAges: true,
            judgesUnsafeMethods: true,
            tellsStory: false
        )
        _ = ledger.begin(machine: 0, heir: false, [])
        let moment = ledger.tick()
        let content = ledger.add(
            .plain,
            "",
            caller: "caller",
            at: moment,
            ledger.clock.nowSeconds,
            isBroken: false
        )
        var answer = FleetAnswer()
        (answer.status, answer.serial, answer.asOf) = (200, content.serial, moment)
        (answer.source, answer.ageSeconds) = (.fresh, 0)
        answer.bytes = FleetPath.plain.body(content.serial, "")
        return (ledger, answer)
    }

    private static func problems(
        _ change: (FleetLedger, inout FleetAnswer, inout FleetQuestion) -> Void
    ) -> [String] {
        var (ledger, answer) = ledger()
        var question = question
        change(ledger, &answer, &question)
        question.startedAt = ledger.tick()
        ledger.judge(answer, to: question)
        return ledger.problems
    }

    @Test func ledgerAcceptsWhatIsPromised() {
        #expect(Self.problems { _, _, _ in }.isEmpty)
        // The purge came before the request at the origin, or is for another resource.
        let other = Self.problems { ledger, _, _ in
            let scope = FleetScope(.path(.brief), isSoft: false)
            ledger.endPurge(ledger.beginPurge(scope, by: 0), receipt: nil)
        }
        #expect(other.isEmpty)
    }

    @Test func ledgerFindsWhatWasPurgedHere() {
        for (isSoft, source, isFound) in [
            (false, CacheInfo.Source.fresh, true), (true, .fresh, true), (true, .stale, false),
            (false, .stale, true),
        ] {
            let problems = Self.problems { ledger, answer, _ in
                answer.source = source
                let scope = FleetScope(.tag("news"), isSoft: isSoft)
                ledger.endPurge(ledger.beginPurge(scope, by: 0), receipt: nil)
            }
            #expect(problems.contains { $0.hasPrefix("(a)") } == isFound)
        }
    }

    @Test func ledgerFindsWhatWasPurgedElsewhere() {
        let purge = AppendedPurge(
            id: [1, 2],
            incarnation: [3],
            position: ModelStreamID(first: 1, second: 1),
            isSoft: false,
            scope: "a",
            value: []
        )
        for isRead in [false, true] {
            let problems = Self.problems { ledger, _, _ in
                ledger.appended(purge)
                if isRead { ledger.applied([purge.id], by: 0) }
            }
            #expect(problems.contains { $0.hasPrefix("(b)") } == isRead)
        }
    }

    @Test func ledgerFindsWrongAnswers() {
        let wrong: [(inout FleetAnswer, inout FleetQuestion) -> Void] = [
            { answer, _ in answer.bytes.removeLast() },
            { answer, _ in answer.asOf = 99 },
            { _, question in
                question = FleetQuestion(
                    name: "caller",
                    process: 0,
                    path: .brief,
                    language: "de"
                )
            },
        ]
        for change in wrong {
            let problems = Self.problems { _, answer, question in change(&answer, &question) }
            #expect(problems.contains { $0.hasPrefix("(d)") })
        }
        let early = Self.problems { ledger, _, _ in ledger.clock.advance(seconds: 10) }
        #expect(early.contains { $0.contains("an age below") })
    }

    @Test func ledgerFindsFreshResponsesBeyondTheirLifetime() {
        for (seconds, source, isFound) in [
            (602, CacheInfo.Source.fresh, false), (603, .fresh, true), (603, .stale, false),
        ] {
            let problems = Self.problems { ledger, answer, _ in
                ledger.clock.advance(seconds: Double(seconds))
                (answer.source, answer.ageSeconds) = (source, seconds)
            }
            #expect(problems.contains { $0.contains("beyond its lifetime") } == isFound)
        }
    }

    // MARK: After the last fault

    @Test func ledgerFindsRequestsWithoutResponseAtTheEnd() {
        let changes: [(inout FleetAnswer) -> Void] = [
            { _ in },
            { answer in answer.error = CacheError(.originFailed, detail: "refused") },
            { answer in answer.status = 503 },
            { answer in answer.source = .fallback },
        ]
        for (number, change) in changes.enumerated() {
            let (ledger, right) = Self.ledger()
            var answer = right
            change(&answer)
            ledger.judgeAtTheEnd(answer, to: Self.question, ModelRedis(ledger.clock))
            #expect(ledger.problems.contains { $0.hasPrefix("no response") } == (number > 0))
        }
    }

    /// A machine appends a purge again if it may be lost, and gets a receipt for the last time.
    @Test(arguments: [1, 2] as [UInt64])
    func ledgerFindsALostPurgeThatWasAppendedTwice(epochOfReceipt: UInt64) {
        let (ledger, answer) = Self.ledger()
        let redis = ModelRedis(ledger.clock)
        _ = redis.run(["HSET", "{log}", "inc", "one"].map { Array($0.utf8) })
        let number = ledger.beginPurge(FleetScope(.tag("news"), isSoft: false), by: 0)
        ledger.offered([[1, 2]], by: 0)
        for epoch in 1...2 as ClosedRange<UInt64> {
            ledger.appended(
                AppendedPurge(
                    id: [1, 2],
                    incarnation: Array("one".utf8),
                    position: ModelStreamID(first: epoch, second: 1),
                    isSoft: false,
                    scope: "t",
                    value: Array("news".utf8)
                )
            )
        }
        ledger.applied([[1, 2]], by: 0)
        ledger.endPurge(number, receipt: ModelStreamID(first: epochOfReceipt, second: 1))
        ledger.judgeAtTheEnd(answer, to: Self.question, redis)
        #expect(ledger.problems.contains { $0.hasPrefix("(c)") })
    }
}
