import CacheEngine
import CacheTestSupport
import Testing

@testable import Simulation

/// The ledger of a single cache finds wrong answers, which no simulation of a right cache shows.
@Suite struct LedgerTests {
    /// The problems of a fresh answer with the origin's only content, which is as old as
    /// `ageSeconds` when the request begins.
    private static func problems(
        _ path: Path = .plain,
        ageSeconds: Double = 0,
        isLast: Bool = false,
        _ change: (Ledger, inout Answer) -> Void = { _, _ in }
    ) -> [String] {
        let clock = TestClock()
        let ledger = Ledger(clock)
        let content = ledger.add(path, language: "de", caller: "caller", askedAt: ledger.tick())
        clock.advance(seconds: ageSeconds)
        var answer = Answer()
        (answer.status, answer.serial, answer.source) = (200, content.serial, .fresh)
        (answer.bytes, answer.isWhole) = (content.bytes, true)
        change(ledger, &answer)
        var plan = RequestPlan(last: path)
        plan.isLast = isLast
        plan.startedAt = ledger.tick()
        ledger.judge(answer, to: plan)
        return ledger.problems
    }

    @Test func freshAnswerBeyondItsLifetimeIsFound() {
        for (path, ageSeconds, isFound) in [
            (.plain, 59, false), (.plain, 60, true), (.brief, 1, false), (.brief, 2, true),
            (.windowed, 2, true), (.confirmed, 0, true),
        ] as [(Path, Double, Bool)] {
            let fresh = Self.problems(path, ageSeconds: ageSeconds)
            #expect(fresh.contains { $0.hasPrefix("fresh beyond") } == isFound)
            let stale = Self.problems(path, ageSeconds: ageSeconds) { _, answer in
                answer.source = .stale
            }
            #expect(stale.isEmpty)
        }
    }

    @Test func confirmationBeginsTheLifetimeAnew() {
        let problems = Self.problems(ageSeconds: 60) { ledger, _ in
            ledger.confirm("\"/plain-0\"", ledger.tick())
        }
        #expect(problems.isEmpty)
    }

    @Test func contentIsNewUntilItsStoreByHandHasEnded() {
        for hasEnded in [false, true] {
            let clock = TestClock()
            let ledger = Ledger(clock)
            let content = ledger.add(
                .brief,
                language: "de",
                caller: "by hand",
                askedAt: ledger.tick()
            ) {
                $0.isByHand = true
                $0.arrivedAt = .max
            }
            if hasEnded { ledger.arrive(content.serial) }
            clock.advance(seconds: 9)
            var answer = Answer()
            (answer.status, answer.serial, answer.source) = (200, content.serial, .fresh)
            var plan = RequestPlan(last: .brief)
            plan.isLast = false
            plan.startedAt = ledger.tick()
            ledger.judge(answer, to: plan)
            #expect(ledger.problems.isEmpty == !hasEnded)
        }
    }

    @Test func lastRequestWithoutResponseIsFound() {
        let wrong: [(Ledger, inout Answer) -> Void] = [
            { _, answer in answer.error = CacheError(.originFailed, detail: "refused") },
            { _, answer in answer.status = 504 },
            { _, answer in answer.isWhole = false },
            { _, answer in answer.source = .fallback },
        ]
        for change in wrong {
            #expect(Self.problems(isLast: false, change).isEmpty)
            let problems = Self.problems(isLast: true, change)
            #expect(problems.contains { $0.hasPrefix("no response after") })
        }
        #expect(Self.problems(isLast: true).isEmpty)
    }
}
