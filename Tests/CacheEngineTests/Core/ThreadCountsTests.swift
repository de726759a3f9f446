import Platform
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct ThreadCountsTests {
    /// More threads at once than the first block has stripes, each with its own number.
    @Test func everyAdditionOfManyThreadsCounts() throws {
        let counts = ThreadCounts(fieldCount: 3)
        let numbers = Mutex(Set<Int>())
        let threads = 150
        let arrived = Atomic(0)
        let members = try (0..<threads).map { _ in
            try SystemThread {
                guard let number = ReaderGate.current?.index else { return }
                numbers.withLock { _ = $0.insert(number) }
                arrived.add(1, ordering: .acquiringAndReleasing)
                // All threads live at once, so that each has a number of its own.
                while arrived.load(ordering: .acquiring) < threads { sched_yield() }
                for _ in 0..<1_000 { counts.add(2, to: 1, by: number) }
                counts.add(1, to: 2, by: nil)
            }
        }
        for member in members { member.join() }
        #expect(numbers.withLock { $0.count } == threads)
        #expect(counts.sum(0) == 0)
        #expect(counts.sum(1) == threads * 2_000)
        #expect(counts.sum(2) == threads)
    }
}
