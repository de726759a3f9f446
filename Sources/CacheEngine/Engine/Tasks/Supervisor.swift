import Synchronization

/// Owns the tasks that outlive the call that started them: leading fetches, refreshes, writes.
///
///     open ──close──▶ closing ──shutDown──▶ closed
///
/// While closing, tasks may still be started, so that accepted entries are written out and waiters
/// get their results; they are owned like the others.
///
/// Invariant: when `shutDown` has returned and its caller was not cancelled, none of these tasks
/// runs.
final class Supervisor: Sendable {
    /// The purpose of a task.
    enum Work: Hashable, Sendable {
        /// The task asks the origin; it is cancelled once the cache is closing.
        case loading
        /// The task watches the loading tasks, and does not count as work.
        case watching
        /// The task carries out accepted operations.
        case writing
    }

    private struct State {
        var isOpen = true
        /// A task is `nil` for the moment between its number and its start.
        var tasks: [Int: (work: Work, task: Task<Void, Never>?)] = [:]
        var nextID = 0

        /// The tasks in the order of their start, so that their ends have one order too.
        var inOrder: [(work: Work, task: Task<Void, Never>?)] {
            tasks.sorted { $0.key < $1.key }.map(\.value)
        }
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// `executor` runs the tasks; `nil` means the global executor.
    init(executor: (any TaskExecutor)? = nil) { self.executor = executor }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// The number of tasks that work.
    var taskCount: Int { working.count }

    private var working: [Task<Void, Never>] {
        state.withLock { state in
            state.inOrder.filter { $0.work != .watching }.compactMap(\.task)
        }
    }

    /// Starts a task on `executor`, or on the supervisor's own if that is `nil`.
    ///
    /// If the cache is closing, a task that does not write is cancelled at once. The task is made
    /// outside the lock, because its executor, which may be the application's, runs then.
    @discardableResult
    func start(
        _ work: Work = .loading,
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        let executor = executor ?? self.executor
        let id = state.withLock { state in
            state.nextID += 1
            state.tasks[state.nextID] = (work, nil)
            return state.nextID
        }
        let task: Task<Void, Never>
        if work == .watching {
            // A task that watches all flights must not inherit from the first caller.
            task = Task.detached(executorPreference: executor) { [self] in
                await body()
                end(id)
            }
        } else {
            task = Task(executorPreference: executor) { [self] in
                await body()
                end(id)
            }
        }
        let isOpen = state.withLock { state in
            // A task that has ended already is not registered.
            if state.tasks.keys.contains(id) { state.tasks[id] = (work, task) }
            return state.isOpen
        }
        if !isOpen, work != .writing { task.cancel() }
        return task
    }

    private func end(_ id: Int) {
        let ended = state.withLock { $0.tasks.removeValue(forKey: id) }
        assert(ended != nil, "a task ends once")
    }

    /// Closes the cache: cancels loading tasks, and lets writing tasks continue.
    func close() {
        let others = state.withLock { state in
            state.isOpen = false
            return state.inOrder.filter { $0.work != .writing }
        }
        for other in others { other.task?.cancel() }
    }

    /// Cancels loading tasks, and returns when all tasks have ended and accepted entries are
    /// written.
    ///
    /// Returns at once if the caller is cancelled, also if tasks still run.
    func shutDown() async {
        close()
        await waitUnlessCancelled { [self] in
            while true {
                let tasks = state.withLock { $0.inOrder.map(\.task) }
                if tasks.isEmpty { return }
                for task in tasks {
                    if let task { await task.value } else { await Task.yield() }
                }
            }
        }
    }

    /// Waits until the tasks that work now have ended, or the caller is cancelled.
    func waitUntilIdle() async {
        let working = working
        if working.isEmpty { return }
        await waitUnlessCancelled {
            for task in working { await task.value }
        }
    }

    private func waitUnlessCancelled(_ wait: @escaping @Sendable () async -> Void) async {
        let race = Race<Void>()
        // This task ends with the tasks that it waits for.
        Task(executorPreference: executor) {
            await wait()
            race.finish(.success(()))
        }
        try? await race.result()
    }
}
