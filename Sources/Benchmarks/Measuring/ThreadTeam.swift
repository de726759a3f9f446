import CacheTestSupport
import Platform
import Synchronization

/// Runs one piece of work on several threads that start at the same moment.
package enum ThreadTeam {
    /// The results of all threads, and the time from the start to the end of the slowest.
    package struct Outcome<Result: Sendable>: Sendable {
        package let results: [Result]
        package let elapsedNanoseconds: UInt64
    }

    /// Starts `threads` threads; none begins `work` before all have started.
    ///
    /// Each thread calls `willStart` before it waits for the others.
    package static func run<Result: Sendable>(
        threads: Int,
        willStart: @escaping @Sendable (_ thread: Int) -> Void = { _ in },
        _ work: @escaping @Sendable (_ thread: Int) -> Result
    ) -> Outcome<Result> {
        precondition(threads >= 1)
        let results = Mutex([Result?](repeating: nil, count: threads))
        let line = StartLine(threads: threads)
        let members = (0..<threads).map { number in
            PlainThread.begin {
                willStart(number)
                line.wait()
                let result = work(number)
                line.finish()
                results.withLock { $0[number] = result }
            }
        }
        for member in members { member.join() }
        let all = results.withLock { $0.compactMap { $0 } }
        precondition(all.count == threads)
        return Outcome(results: all, elapsedNanoseconds: line.elapsedNanoseconds)
    }
}

/// A barrier that releases all threads of a team at the same moment.
private final class StartLine: Sendable {
    private let missing: Atomic<Int>
    private let startedAt = Atomic<UInt64>(0)
    private let finishedAt = Atomic<UInt64>(0)

    init(threads: Int) { missing = Atomic(threads) }

    func wait() {
        let isLast = missing.subtract(1, ordering: .acquiringAndReleasing).newValue == 0
        if isLast {
            startedAt.store(monotonicNanoseconds(), ordering: .releasing)
        } else {
            // The thread spins because a thread that must be woken starts late. It yields because
            // there may be fewer cores than threads.
            while startedAt.load(ordering: .acquiring) == 0 { sched_yield() }
        }
    }

    func finish() {
        let now = monotonicNanoseconds()
        var seen = finishedAt.load(ordering: .relaxed)
        while now > seen {
            let (exchanged, original) = finishedAt.compareExchange(
                expected: seen,
                desired: now,
                ordering: .acquiringAndReleasing
            )
            if exchanged { break }
            seen = original
        }
    }

    var elapsedNanoseconds: UInt64 {
        finishedAt.load(ordering: .acquiring) &- startedAt.load(ordering: .acquiring)
    }
}
