import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Runs one piece of work on several threads that start at the same moment.
package enum ThreadTeam {
    /// What the threads gave back, and how long the slowest took.
    package struct Outcome<Result: Sendable>: Sendable {
        package let results: [Result]
        package let elapsedNanoseconds: UInt64
    }

    /// Starts `threads` threads; none begins `work` before all stand at the line.
    package static func run<Result: Sendable>(
        threads: Int,
        _ work: @escaping @Sendable (_ thread: Int) -> Result
    ) -> Outcome<Result> {
        precondition(threads >= 1)
        let results = Mutex([Result?](repeating: nil, count: threads))
        let line = StartLine(threads: threads)
        let members = (0..<threads).map { number in
            Member {
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

/// The line that all threads of a team leave together.
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
            // Spinning: a thread that must be woken would start late. Yielding: there may be
            // fewer cores than threads.
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

/// One thread of a team.
private struct Member {
    /// What the thread runs, on its way through the C interface.
    private final class Job: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let handle: pthread_t

    init(_ run: @escaping @Sendable () -> Void) {
        // The thread releases what is retained here.
        let job = Unmanaged.passRetained(Job(run)).toOpaque()
        #if canImport(Darwin)
            var handle: pthread_t?
            let status = pthread_create(&handle, nil, { Self.body($0) }, job)
            guard status == 0, let handle else { preconditionFailure("no thread could be started") }
        #else
            var handle = pthread_t()
            let status = pthread_create(&handle, nil, { Self.body($0) }, job)
            precondition(status == 0, "no thread could be started")
        #endif
        self.handle = handle
    }

    func join() { pthread_join(handle, nil) }

    private static func body(_ job: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        guard let job else { return nil }
        Unmanaged<Job>.fromOpaque(job).takeRetainedValue().run()
        return nil
    }
}
