import Platform
import Synchronization

/// An executor with one thread of its own, like the event loop of a server.
///
/// It counts its jobs, and those that came from other threads. A task that prefers the executor
/// and never leaves it adds none of the latter once it has started: each return to the executor
/// would be one.
public final class ThreadExecutor: TaskExecutor {
    /// The jobs that have been queued so far.
    public struct Counts: Hashable, Sendable {
        /// All jobs.
        public var jobs = 0
        /// The jobs that came from other threads.
        public var fromElsewhere = 0
    }

    private struct State {
        var ready: [UnownedJob] = []
        var thread: UInt?
        var counts = Counts()
        var isStopped = false
    }

    private let state = Mutex(State())
    /// Raised for the sleeping thread.
    private let bell = ThreadFlag()

    /// Starts the thread, which runs until `stop()`.
    public init() { PlainThread.start { self.run() } }

    /// The jobs that have been queued so far.
    public var counts: Counts { state.withLock { $0.counts } }

    /// Whether the caller runs on the executor's thread.
    public var isCurrent: Bool { state.withLock { $0.thread == SystemThread.currentNumber } }

    /// Queues a job that is ready to run.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let isElsewhere = state.withLock { state in
            state.ready.append(job)
            state.counts.jobs += 1
            guard state.thread != SystemThread.currentNumber else { return false }
            state.counts.fromElsewhere += 1
            return true
        }
        if isElsewhere { bell.raise() }
    }

    /// Ends the thread once no job is ready; no job may be queued afterwards.
    public func stop() {
        state.withLock { $0.isStopped = true }
        bell.raise()
    }

    private func run() {
        state.withLock { $0.thread = SystemThread.currentNumber }
        var jobs: [UnownedJob] = []
        while true {
            let isStopped = state.withLock { state in
                swap(&jobs, &state.ready)
                return state.isStopped
            }
            if jobs.isEmpty {
                if isStopped { return }
                bell.waitAndLower()
            }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
            jobs.removeAll(keepingCapacity: true)
        }
    }
}
