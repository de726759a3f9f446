import Benchmarks
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
        // Each thread waits inside its work for the other, so the test ends only if both run.
        let arrived = Atomic(0)
        let outcome = ThreadTeam.run(threads: 2) { _ in
            arrived.add(1, ordering: .acquiringAndReleasing)
            var looks = 0
            while arrived.load(ordering: .acquiring) < 2, looks < 2_000_000_000 { looks += 1 }
            return arrived.load(ordering: .acquiring)
        }
        #expect(outcome.results == [2, 2])
        #expect(outcome.elapsedNanoseconds > 0)
    }
}
