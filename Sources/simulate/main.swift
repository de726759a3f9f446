import CacheTestSupport
import Simulation
import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

// simulate <first seed> <count> [brief|long]: lives that many lives, prints one line for each that
// went wrong, and ends with status 1 when one did.

let arguments = CommandLine.arguments.dropFirst().map { String($0) }
guard arguments.count >= 2, let first = UInt64(arguments[0]), let count = UInt64(arguments[1])
else {
    print("usage: simulate <first seed> <count> [brief|long]")
    exit(2)
}
let size: Simulation.Size = arguments.dropFirst(2).first == "long" ? .long : .brief

/// The next seed, and what came of those before; shared by the threads that work them off.
final class Progress: Sendable {
    private struct State {
        var next: UInt64
        var end: UInt64
        var answers = 0
        var jobs = 0
        var failures = 0
    }

    private let state: Mutex<State>

    init(first: UInt64, count: UInt64) { state = Mutex(State(next: first, end: first + count)) }

    func takeSeed() -> UInt64? {
        state.withLock { state in
            guard state.next < state.end else { return nil }
            defer { state.next += 1 }
            return state.next
        }
    }

    func add(_ verdict: Simulation.Verdict) {
        state.withLock { state in
            state.answers += verdict.answers
            state.jobs += verdict.jobs
            if !verdict.problems.isEmpty { state.failures += 1 }
        }
        if !verdict.problems.isEmpty { print(verdict.replay) }
    }

    var summary: (answers: Int, jobs: Int, failures: Int) {
        state.withLock { ($0.answers, $0.jobs, $0.failures) }
    }
}

let progress = Progress(first: first, count: count)
let threads = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
await withTaskGroup(of: Void.self) { group in
    for _ in 0..<threads {
        group.addTask {
            await PlainThread.run {
                while let seed = progress.takeSeed() {
                    progress.add(Simulation(seed: seed, size: size).run())
                }
            }
        }
    }
}
let summary = progress.summary
print(
    "\(count) seeds from \(first): \(summary.answers) answers, \(summary.jobs) jobs, "
        + "\(summary.failures) failed"
)
exit(summary.failures == 0 ? 0 : 1)
