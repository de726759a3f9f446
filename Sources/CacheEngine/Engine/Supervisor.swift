import Synchronization

/// Owns the tasks that outlive the call that started them: leading fetches, refreshes, writes.
///
/// Invariant: once `shutDown` has returned no such task runs, and none is started any more.
final class Supervisor: Sendable {
    private struct State {
        var isOpen = true
        var tasks: [Int: Task<Void, Never>] = [:]
        var nextID = 0
    }

    private let state = Mutex(State())

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// Starts a task; one that is already cancelled when the cache is closed.
    func start(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        state.withLock { state in
            let id = state.nextID
            state.nextID += 1
            let task = Task { [self] in
                await work()
                _ = self.state.withLock { $0.tasks.removeValue(forKey: id) }
            }
            if state.isOpen { state.tasks[id] = task } else { task.cancel() }
            return task
        }
    }

    /// From here on tasks are cancelled as they start.
    func close() { state.withLock { $0.isOpen = false } }

    /// Cancels every task and returns when all have ended.
    func shutDown() async {
        let tasks = state.withLock { state in
            state.isOpen = false
            return Array(state.tasks.values)
        }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
    }

    /// Returns when the tasks that run now have ended.
    func waitUntilIdle() async {
        for task in state.withLock({ Array($0.tasks.values) }) { await task.value }
    }
}
