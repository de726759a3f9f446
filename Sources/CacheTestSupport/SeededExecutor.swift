import Synchronization

/// An executor that runs one job at a time, picked at random from those that are ready: one seed,
/// one order of events.
///
/// Tasks that prefer it (`Task(executorPreference:)`, `Configuration.taskExecutor`), and the actors
/// they call, run nowhere else. Nothing runs at all until `runUntilIdle()` or `settle()`; when that
/// returns, every task waits for something only the test can give it: time, bytes, an answer. A
/// task that should have been woken and was not is thus seen at once, without any waiting.
public final class SeededExecutor: TaskExecutor {
    private struct State {
        var random: SeededRandom
        var ready: [UnownedJob] = []
        var jobCount = 0
        /// A number for the order in which jobs ran.
        var trace: UInt64 = 0
    }

    /// More jobs than this without rest are a task that spins.
    private static let jobsMax = 50_000_000

    private let state: Mutex<State>

    /// An executor whose choices follow from `seed`.
    public init(seed: UInt64) { state = Mutex(State(random: SeededRandom(seed: seed))) }

    /// How many jobs have run.
    public var jobCount: Int { state.withLock { $0.jobCount } }

    /// A number that is the same for two runs only if their choices were.
    public var trace: UInt64 { state.withLock { $0.trace } }

    /// Takes a job that is ready to run.
    public func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        state.withLock { $0.ready.append(job) }
    }

    /// Starts a task that runs here.
    @discardableResult
    public func start<Result: Sendable>(
        _ body: @escaping @Sendable () async -> Result
    ) -> Task<Result, Never> {
        Task(executorPreference: self) { await body() }
    }

    /// Runs jobs until none is ready.
    ///
    /// To be called from a thread that runs no task itself, as `PlainThread` gives.
    public func runUntilIdle() {
        let start = jobCount
        while let job = takeOne() {
            job.runSynchronously(on: asUnownedTaskExecutor())
            precondition(jobCount - start < Self.jobsMax, "A task spins")
        }
    }

    /// Suspends until none of the jobs here is ready.
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
