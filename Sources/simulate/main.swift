import CacheTestSupport
import Platform
import Simulation
import Synchronization

// simulate FIRST-SEED COUNT [brief|long|fleet] runs one simulation for each seed. It prints a line
// for each failed simulation and exits with status 1 if there is any, or if no request got a
// response. If a simulation traps, the seeds under way are written to standard error.

let arguments = CommandLine.arguments.dropFirst().map { String($0) }
let sizes: [String: Simulation.Size] = ["brief": .brief, "long": .long, "fleet": .fleet]
guard (2...3).contains(arguments.count), let first = UInt64(arguments[0]),
    let count = UInt64(arguments[1]), first <= .max - count,
    let size = sizes[arguments.dropFirst(2).first ?? "brief"]
else {
    let usage = Array("usage: simulate FIRST-SEED COUNT [brief|long|fleet]\n".utf8)
    _ = write(2, usage, usage.count)
    exit(2)
}

/// The next seed and the totals of finished simulations, shared by the threads that run them.
final class Progress: Sendable {
    private struct State {
        var next: UInt64
        var end: UInt64
        var answers = 0
        var jobs = 0
        var failures = 0
    }

    private let state: Mutex<State>
    /// Whether one seed alone is run: then all its problems are printed.
    private let isAlone: Bool

    init(first: UInt64, count: UInt64) {
        state = Mutex(State(next: first, end: first + count))
        isAlone = count == 1
    }

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
        guard !verdict.problems.isEmpty else { return }
        print(verdict.replay)
        if isAlone { for problem in verdict.problems.dropFirst() { print(problem) } }
        // Another simulation may trap, and the line would be lost.
        fflush(nil)
    }

    var summary: (answers: Int, jobs: Int, failures: Int) {
        state.withLock { ($0.answers, $0.jobs, $0.failures) }
    }
}

let progress = Progress(first: first, count: count)
// A single seed is known, and the handler takes the place of the runtime's own report of a trap.
if count > 1 { RunningSeeds.tellBeforeTraps() }
await withTaskGroup(of: Void.self) { group in
    for place in 0..<RunningSeeds.count {
        group.addTask {
            await PlainThread.run {
                while let seed = progress.takeSeed() {
                    RunningSeeds.begin(seed, at: place)
                    defer { RunningSeeds.end(at: place) }
                    switch size {
                    case .fleet:
                        let life = FleetLife(seed: seed, tellsStory: count == 1)
                        progress.add(life.run())
                        for event in life.story { print(event) }
                    default: progress.add(Simulation(seed: seed, size: size).run())
                    }
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
// A cache that answers no request gives no wrong answer.
let isMute = count > 0 && summary.answers == 0
if isMute { print("no request got a response") }
exit(summary.failures == 0 && !isMute ? 0 : 1)
