import Platform
import Synchronization

/// The executor of one disk shard or body: it runs jobs in order, one at a time, on the I/O pool.
///
///     idle ──enqueue / requestWork──▶ scheduled ──a thread takes it──▶ running
///      ▲                                  ▲─────more arrived meanwhile─────┤
///      └──────────────────────────nothing left─────────────────────────────┘
///
/// An actor on a lane may wait for a device without blocking a thread of Swift's pool.
package final class IOLane: SerialExecutor {
    private struct Waiting {
        var jobs: [UnownedJob] = []
        var wantsWork = false
        /// Scheduled or running: nothing else may submit the lane to the pool.
        var isActive = false
        var work: (@Sendable () -> Void)?
    }

    private let core: IOPoolCore
    private let waiting = Mutex(Waiting())
    /// The thread that runs the lane now; 0 between runs.
    private let owner = Atomic<UInt>(0)

    init(_ core: IOPoolCore) { self.core = core }

    /// Sets the work that later requests run; must be called once, before the first request.
    package func setWork(_ work: @escaping @Sendable () -> Void) {
        waiting.withLock { $0.work = work }
    }

    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let mustSchedule = waiting.withLock { waiting in
            waiting.jobs.append(job)
            return Self.becomesActive(&waiting)
        }
        if mustSchedule { core.submit(self) }
    }

    /// Runs the lane's work soon; several requests before it runs count as one.
    package func requestWork() {
        if noteAppointment() { core.submit(self) }
    }

    /// Runs the lane's work at that time of the machine's monotonic clock.
    package func requestWork(atNanoseconds nanoseconds: UInt64) {
        core.wake(self, atNanoseconds: nanoseconds)
    }

    package func checkIsolated() {
        precondition(
            owner.load(ordering: .relaxed) == SystemThread.currentNumber,
            "not on the shard's lane"
        )
    }

    /// Notes that the lane's work is due; returns `true` if the caller must schedule the lane.
    func noteAppointment() -> Bool {
        waiting.withLock { waiting in
            waiting.wantsWork = true
            return Self.becomesActive(&waiting)
        }
    }

    /// Runs the waiting jobs and the requested work; called by a pool thread.
    func run() {
        assert(owner.load(ordering: .relaxed) == 0, "one thread at a time runs a lane")
        owner.store(SystemThread.currentNumber, ordering: .relaxed)
        let (jobs, work) = waiting.withLock { waiting in
            assert(waiting.isActive, "only a lane that was scheduled runs")
            let taken = (waiting.jobs, waiting.wantsWork ? waiting.work : nil)
            waiting.jobs = []
            waiting.wantsWork = false
            return taken
        }
        for job in jobs { job.runSynchronously(on: asUnownedSerialExecutor()) }
        work?()
        owner.store(0, ordering: .relaxed)
        let hasMore = waiting.withLock { waiting in
            waiting.isActive = !waiting.jobs.isEmpty || waiting.wantsWork
            return waiting.isActive
        }
        if hasMore { core.submit(self) }
    }

    private static func becomesActive(_ waiting: inout Waiting) -> Bool {
        guard !waiting.isActive else { return false }
        waiting.isActive = true
        return true
    }
}
