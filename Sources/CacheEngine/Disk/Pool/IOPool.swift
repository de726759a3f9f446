internal import CEngineShims

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A few threads that may wait for a device, so that Swift's own threads never do.
///
/// Two kinds of work: jobs, in order of arrival and bounded; and lanes (`IOLane`), each of which
/// runs on one thread at a time. A lane may ask to be woken at a moment; the idle threads keep
/// those appointments, so nothing else has to.
package final class IOPool: Sendable {
    private let core: IOPoolCore

    /// Starts `threadCount` threads that accept `jobsMax` waiting jobs.
    package init(threadCount: Int, jobsMax: Int = 4_096) {
        precondition(threadCount > 0 && jobsMax > 0)
        core = IOPoolCore(jobsMax: jobsMax)
        for _ in 0..<threadCount { core.startThread() }
    }

    deinit { core.stop() }

    /// Runs `job` soon on one of the threads; false when too many wait already.
    package func submit(_ job: @escaping @Sendable () -> Void) -> Bool { core.submit(job) }

    /// Runs `job` even when many wait: for work that ends something, such as closing a file.
    package func submitClosing(_ job: @escaping @Sendable () -> Void) { core.submitAlways(job) }

    /// Runs `work` on one of the threads and gives its result; nil when too many jobs wait.
    package func run<Result: Sendable>(
        _ work: @escaping @Sendable () -> Result
    ) async -> Result? {
        await withUnsafeContinuation { continuation in
            let isAccepted = core.submit { continuation.resume(returning: work()) }
            if !isAccepted { continuation.resume(returning: nil) }
        }
    }

    /// A lane on these threads, without work yet.
    package func makeLane() -> IOLane { IOLane(core) }
}

/// The queue that the threads of a pool share; it outlives the pool until the last job is done.
///
/// `@unchecked Sendable`: every variable is read and written between `ce_gate_lock` and
/// `ce_gate_unlock` of `gate`.
///
/// Invariant: no job and no lane is let go of between the two. What goes with it, the last holder of
/// a body for one, may submit a job.
final class IOPoolCore: @unchecked Sendable {
    private let gate = ce_gate_make()
    private let jobsMax: Int
    private var jobs: [(@Sendable () -> Void)?] = []
    private var jobsHead = 0
    private var lanes: [IOLane?] = []
    private var lanesHead = 0
    private var appointments: [(lane: IOLane, nanoseconds: UInt64)] = []
    private var idleThreads = 0
    private var lanesInRow = 0
    private var isStopped = false

    private static let lanesInRowMax = 4

    init(jobsMax: Int) { self.jobsMax = jobsMax }

    deinit { ce_gate_free(gate) }

    func submit(_ job: @escaping @Sendable () -> Void) -> Bool {
        locked {
            guard jobs.count - jobsHead < jobsMax, !isStopped else { return false }
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

    /// Wakes `lane` at that moment of the monotonic clock, or earlier when it already asked so.
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

    /// Lets the threads end once nothing waits any more.
    func stop() {
        let cancelled = locked {
            isStopped = true
            defer { appointments = [] }
            ce_gate_broadcast(gate)
            return appointments
        }
        withExtendedLifetime(cancelled) {}
    }

    func startThread() {
        let context = Unmanaged.passRetained(self)
        #if canImport(Darwin)
            var thread: pthread_t?
        #else
            var thread = pthread_t()
        #endif
        let failure = pthread_create(&thread, nil, Self.threadMain, context.toOpaque())
        guard failure == 0 else {
            context.release()
            return
        }
        #if canImport(Darwin)
            if let thread { pthread_detach(thread) }
        #else
            pthread_detach(thread)
        #endif
    }

    #if canImport(Darwin)
        private static let threadMain:
            @convention(c) (UnsafeMutableRawPointer) ->
                UnsafeMutableRawPointer? = {
                    Unmanaged<IOPoolCore>.fromOpaque($0).takeRetainedValue().work()
                    return nil
                }
    #else
        private static let threadMain:
            @convention(c) (UnsafeMutableRawPointer?) ->
                UnsafeMutableRawPointer? = {
                    guard let context = $0 else { return nil }
                    Unmanaged<IOPoolCore>.fromOpaque(context).takeRetainedValue().work()
                    return nil
                }
    #endif

    private enum Task {
        case job(@Sendable () -> Void)
        case lane(IOLane)
    }

    private func work() {
        while let task = nextTask() {
            switch task {
            case .job(let job): job()
            case .lane(let lane): lane.run()
            }
        }
    }

    private func nextTask() -> Task? {
        locked {
            while true {
                movePastAppointments()
                // Lanes first, as every queued write and flush waits for one; but many bodies that
                // are written at once must not keep reads and closings from their turn.
                if lanesInRow < Self.lanesInRowMax || jobs.count == jobsHead,
                    let lane = Self.removeFirst(from: &lanes, head: &lanesHead)
                {
                    lanesInRow += 1
                    return .lane(lane)
                }
                lanesInRow = 0
                if let job = Self.removeFirst(from: &jobs, head: &jobsHead) { return .job(job) }
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

    /// Takes out the first in constant time; the front part that is empty goes when it is half.
    private static func removeFirst<Item>(from items: inout [Item?], head: inout Int) -> Item? {
        guard head < items.count else { return nil }
        let item = items[head].take()
        head += 1
        if head * 2 >= items.count {
            items.removeFirst(head)
            head = 0
        }
        return item
    }

    private func locked<Result>(_ body: () -> Result) -> Result {
        ce_gate_lock(gate)
        defer { ce_gate_unlock(gate) }
        return body()
    }
}

/// Nanoseconds of the machine's monotonic clock.
func monotonicNanoseconds() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
