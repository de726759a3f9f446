import Synchronization

/// Owns the tasks that outlive the call that started them: leading fetches, refreshes, writes.
///
///     open ──close──▶ closing ──shutDown──▶ closed
///
/// While closing, tasks may still be started, so that what was accepted is written out and whoever
/// waits is told; they are owned like the others.
///
/// Invariant: when `shutDown` returns, none of these tasks runs.
final class Supervisor: Sendable {
    /// What a task is there for.
    enum Work: Hashable, Sendable {
        /// Asks the origin: pointless once the cache is closing.
        case loading
        /// Looks after those who load; as long as there is nothing to look after, no work.
        case watching
        /// Carries out what has been accepted.
        case writing
    }

    private struct State {
        var isOpen = true
        var tasks: [Int: (work: Work, task: Task<Void, Never>)] = [:]
        var nextID = 0
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// `executor` runs the tasks; nil for the global one.
    init(executor: (any TaskExecutor)? = nil) { self.executor = executor }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// How many tasks work.
    var taskCount: Int { working.count }

    private var working: [Task<Void, Never>] {
        state.withLock { state in
            state.tasks.values.filter { $0.work != .watching }.map(\.task)
        }
    }

    /// Starts a task; only one that writes is not cancelled from the outset when the cache is closing.
    func start(
        _ work: Work = .loading,
        _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            let run: @Sendable () async -> Void = { [self] in
                await body()
                _ = self.state.withLock { $0.tasks.removeValue(forKey: id) }
            }
            // Who looks after all is not the child of the one who happened to come first.
            let task =
                work == .watching
                ? Task.detached(executorPreference: executor, operation: run)
                : Task(executorPreference: executor, operation: run)
            state.tasks[id] = (work, task)
            if !state.isOpen, work != .writing { task.cancel() }
            return task
        }
    }

    /// From here on nothing new is begun: loads are cancelled, writes go on.
    func close() {
        let others = state.withLock { state in
            state.isOpen = false
            return state.tasks.values.filter { $0.work != .writing }
        }
        for other in others { other.task.cancel() }
    }

    /// Cancels what loads, and returns when all tasks have ended: what was accepted is written.
    func shutDown() async {
        close()
        while true {
            let tasks = state.withLock { Array($0.tasks.values) }
            if tasks.isEmpty { return }
            for task in tasks { await task.task.value }
        }
    }

    /// Returns when the tasks that work now have ended.
    func waitUntilIdle() async {
        for task in working { await task.value }
    }
}
