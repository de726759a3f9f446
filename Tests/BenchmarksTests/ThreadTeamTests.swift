import Benchmarks
import Platform
import Synchronization
import Testing

@Suite struct ThreadTeamTests {
    @Test(arguments: [1, 2, 5])
    func everyThreadRunsOnceAndItsResultStandsInItsPlace(threads: Int) {
        let runs = Atomic(0)
        let outcome = ThreadTeam.run(threads: threads) { number in
            runs.add(1, ordering: .relaxed)
            return number * 10
        }
        #expect(outcome.results == (0..<threads).map { $0 * 10 })
        #expect(runs.load(ordering: .relaxed) == threads)
    }

    @Test func noThreadBeginsBeforeAllAreThere() {
        let others = Atomic(0)
        let begun = Atomic(0)
        let seen = Atomic(-1)
        let outcome = ThreadTeam.run(
            threads: 3,
            willStart: { thread in
                guard thread == 2 else {
                    others.add(1, ordering: .acquiringAndReleasing)
                    return
                }
                // The others are there, and have time to begin.
                while others.load(ordering: .acquiring) < 2 { sched_yield() }
                for _ in 0..<10_000 { sched_yield() }
                seen.store(begun.load(ordering: .acquiring), ordering: .releasing)
            },
            { _ in begun.add(1, ordering: .acquiringAndReleasing).newValue }
        )
        #expect(seen.load(ordering: .acquiring) == 0)
        #expect(outcome.results.sorted() == [1, 2, 3])
        #expect(outcome.elapsedNanoseconds > 0)
    }
}
