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
    private let bell = Bell()

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
        if isElsewhere { bell.ring() }
    }

    /// Ends the thread once no job is ready; no job may be queued afterwards.
    public func stop() {
        state.withLock { $0.isStopped = true }
        bell.ring()
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
                bell.wait()
            }
            for job in jobs { job.runSynchronously(on: asUnownedTaskExecutor()) }
            jobs.removeAll(keepingCapacity: true)
        }
    }
}

/// Wakes one sleeping thread; a ring before the sleep is not lost.
///
/// `@unchecked Sendable`: `hasRung` is read and written under `lock` alone.
private final class Bell: @unchecked Sendable {
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private var hasRung = false

    init() {
        pthread_mutex_init(lock, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(lock)
        condition.deallocate()
        lock.deallocate()
    }

    func ring() {
        pthread_mutex_lock(lock)
        hasRung = true
        pthread_cond_signal(condition)
        pthread_mutex_unlock(lock)
    }

    func wait() {
        pthread_mutex_lock(lock)
        while !hasRung { pthread_cond_wait(condition, lock) }
        hasRung = false
        pthread_mutex_unlock(lock)
    }
}
