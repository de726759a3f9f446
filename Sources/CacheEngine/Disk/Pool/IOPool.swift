internal import CEngineShims
import Platform

/// A few threads that may wait for a device, so that Swift's own threads never wait for one.
///
/// The pool runs two kinds of work. Jobs run in order of arrival, and their number is bounded.
/// Lanes (`IOLane`) each run on one thread at a time. A lane may ask to be woken at a given time;
/// the idle threads keep these appointments, so no timer is needed.
package final class IOPool: Sendable {
    private let core: IOPoolCore

    /// Starts `threadCount` threads with a queue of at most `jobsMax` waiting jobs.
    ///
    /// `start` starts one thread, and returns `false` if the system starts none. Fewer threads than
    /// asked for do.
    package init(
        threadCount: Int,
        jobsMax: Int = 4_096,
        start: (@escaping @Sendable () -> Void) -> Bool = SystemThread.startWithoutSignals
    ) {
        precondition(threadCount > 0 && jobsMax > 0)
        core = IOPoolCore(jobsMax: jobsMax)
        let started = (0..<threadCount).count { _ in start { [core] in core.work() } }
        // A stopped pool refuses every job, so no caller waits for a thread that never comes.
        if started == 0 { core.stop() }
    }

    /// A pool without threads, whose work a simulation runs.
    private init(core: IOPoolCore) { self.core = core }

    /// A pool without threads: each call of `runOne` does one piece of work, on the caller's thread.
    ///
    /// Lanes are not woken at given times.
    package static func manual() -> IOPool { IOPool(core: IOPoolCore(jobsMax: 4_096)) }

    /// Runs the next job or lane; returns `false` if no work waits.
    package func runOne() -> Bool { core.runOne() }

    deinit { core.stop() }

    /// Runs `job` soon on one of the threads; returns `false` if too many jobs are waiting, or if no
    /// thread could be started.
    package func submit(_ job: @escaping @Sendable () -> Void) -> Bool { core.submit(job) }

    /// Runs `job` even if too many jobs are waiting, for what cannot be refused any more, such as
    /// closing a file.
    package func submitClosing(_ job: @escaping @Sendable () -> Void) { core.submitAlways(job) }

    /// Runs `work` on one of the threads and returns its result; `nil` if too many jobs are
    /// waiting, or if no thread could be started.
    package func run<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result
    ) async -> Result? {
        await withUnsafeContinuation { continuation in
            let isAccepted = core.submit { continuation.resume(returning: work()) }
            if !isAccepted { continuation.resume(returning: nil) }
        }
    }

    /// Creates a lane on these threads, without work.
    package func makeLane() -> IOLane { IOLane(core) }
}

/// The queue shared by the threads of a pool; it outlives the pool until the last job is done.
///
/// `@unchecked Sendable`: every variable is read and written between `ce_gate_lock` and
/// `ce_gate_unlock` of `gate`.
///
/// Invariant: no job and no lane is released between the two. Its release may submit a job: for
/// example, it may release the last reference to a body.
final class IOPoolCore: @unchecked Sendable {
    private let gate = ce_gate_make()
    private let jobsMax: Int
    private var jobs = FIFO<@Sendable () -> Void>()
    private var lanes = FIFO<IOLane>()
    private var appointments: [(lane: IOLane, nanoseconds: UInt64)] = []
    private var idleThreads = 0
    private var lanesInRow = 0
    private var isStopped = false

    private static let lanesInRowMax = 4

    init(jobsMax: Int) { self.jobsMax = jobsMax }

    deinit { ce_gate_free(gate) }

    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        locked {
            guard jobs.count < jobsMax, !isStopped else { return false }
            jobs.append(job)
            wakeOne()
            return true
        }
    }

    func submitAlways(_ job: @escaping @Sendable () -> Void) {
        let isAccepted = locked {
            guard !isStopped else { return false }
            jobs.append(job)
            wakeOne()
            return true
        }
        if !isAccepted { job() }
    }

    func submit(_ lane: IOLane) {
        locked {
            lanes.append(lane)
            wakeOne()
        }
    }

    /// Wakes `lane` at that time of the monotonic clock, or earlier if the lane already asked for
    /// that.
    func wake(_ lane: IOLane, atNanoseconds nanoseconds: UInt64) {
        locked {
            if let known = appointments.firstIndex(where: { $0.lane === lane }) {
                guard nanoseconds < appointments[known].nanoseconds else { return }
                appointments[known].nanoseconds = nanoseconds
            } else {
                appointments.append((lane, nanoseconds))
            }
            wakeOne()
        }
    }

    /// Ends the threads once no job and no lane is waiting.
    func stop() {
        let cancelled = locked {
            isStopped = true
            defer { appointments = [] }
            ce_gate_broadcast(gate)
            return appointments
        }
        withExtendedLifetime(cancelled) {}
    }

    private enum Work {
        case job(@Sendable () -> Void)
        case lane(IOLane)

        func run() {
            switch self {
            case .job(let job): job()
            case .lane(let lane): lane.run()
            }
        }
    }

    /// Does the work of one thread, until the pool is stopped and no work waits.
    func work() {
        while let work = nextWork() { work.run() }
    }

    /// Runs one piece of work that waits; returns `false` if no work waits.
    func runOne() -> Bool {
        let work: Work? = locked {
            if let lane = lanes.popFirst() { return .lane(lane) }
            return jobs.popFirst().map { .job($0) }
        }
        work?.run()
        return work != nil
    }

    private func nextWork() -> Work? {
        locked {
            while true {
                movePastAppointments()
                // Lanes run first, because every queued write and flush waits for one. The limit
                // keeps many bodies that are written at once from delaying reads and closings.
                if lanesInRow < Self.lanesInRowMax || jobs.isEmpty,
                    let lane = lanes.popFirst()
                {
                    lanesInRow += 1
                    return .lane(lane)
                }
                lanesInRow = 0
                if let job = jobs.popFirst() { return .job(job) }
                if isStopped { return nil }
                idleThreads += 1
                ce_gate_wait(gate, nanosecondsToNextAppointment)
                idleThreads -= 1
            }
        }
    }

    private func movePastAppointments() {
        guard !appointments.isEmpty else { return }
        let now = monotonicNanoseconds()
        var index = 0
        while index < appointments.count {
            guard appointments[index].nanoseconds <= now else {
                index += 1
                continue
            }
            let lane = appointments.remove(at: index).lane
            if lane.noteAppointment() { lanes.append(lane) }
        }
    }

    private var nanosecondsToNextAppointment: UInt64 {
        guard let next = appointments.map(\.nanoseconds).min() else { return .max }
        let now = monotonicNanoseconds()
        return next > now ? next - now : 1
    }

    private func wakeOne() { if idleThreads > 0 { ce_gate_signal(gate) } }

    private func locked<Result>(_ body: () -> Result) -> Result {
        ce_gate_lock(gate)
        defer { ce_gate_unlock(gate) }
        return body()
    }
}
