import Synchronization

/// An executor that runs one ready job at a time, chosen at random: one seed, one order of events.
///
/// Tasks that prefer it (`Task(executorPreference:)`, `HTTPCache.Configuration.taskExecutor`), and the actors
/// they call, run only here. No job runs before `runUntilIdle()` or `settle()`. When these return,
/// every task waits for an event that only the test can cause: time, bytes or an answer. A task
/// that was not woken although it should have been is thus found at once.
public final class SeededExecutor: TaskExecutor {
    private struct State {
        var random: SeededRandom
        var ready: [UnownedJob] = []
        var jobCount = 0
        /// A digest of the order in which jobs ran.
        var trace: UInt64 = 0
    }

    /// A task that runs more jobs than this without a pause is assumed to spin.
    private static let jobsMax = 50_000_000

    private let state: Mutex<State>

    /// Creates an executor whose choices are determined by `seed`.
    public init(seed: UInt64) { state = Mutex(State(random: SeededRandom(seed: seed))) }

    /// The number of jobs that have run.
    public var jobCount: Int { state.withLock { $0.jobCount } }

    /// A digest of the executor's choices; it differs if the choices of two runs differ.
    public var trace: UInt64 { state.withLock { $0.trace } }

    /// Queues a job that is ready to run.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.ready.append(job) }
    }

    /// Starts a task on this executor.
    @discardableResult
    public func start<Result: Sendable>(
        _ body: @escaping @Sendable () async -> Result
    ) -> Task<Result, Never> {
        Task(executorPreference: self) { await body() }
    }

    /// Runs jobs until none is ready.
    ///
    /// Call it from a thread that runs no task, such as a `PlainThread`.
    public func runUntilIdle() {
        let start = jobCount
        while let job = takeOne() {
            job.runSynchronously(on: asUnownedTaskExecutor())
            precondition(jobCount - start < Self.jobsMax, "A task spins")
        }
    }

    /// Suspends until none of the executor's jobs is ready.
    public func settle() async { await PlainThread.run { self.runUntilIdle() } }

    private func takeOne() -> UnownedJob? {
        state.withLock { state in
            guard !state.ready.isEmpty else { return nil }
            let index = Int.random(in: 0..<state.ready.count, using: &state.random)
            state.ready.swapAt(index, state.ready.count - 1)
            state.jobCount += 1
            state.trace = (state.trace ^ UInt64(index)) &* 0x100_0000_01B3
            return state.ready.removeLast()
        }
    }
}
