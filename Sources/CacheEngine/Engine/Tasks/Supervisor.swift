import Synchronization

/// Owns the work that outlives the call that started it: leading fetches, refreshes, writes.
///
/// It is a task, or an exchange with an origin that runs in none.
///
///     open ──close──▶ closing ──shutDown──▶ closed
///
/// While closing, tasks may still be started, so that accepted entries are written out and waiters
/// get their results; they are owned like the others.
///
/// Invariant: when `shutDown` has returned and its caller was not cancelled, none of this work
/// runs.
final class Supervisor: Sendable {
    /// The purpose of a task.
    enum Work: Hashable, Sendable {
        /// The task asks the origin; it is cancelled once the cache is closing.
        case loading
        /// The task watches the loading tasks, or tidies up periodically, and does not count as work.
        case watching
        /// The task carries out accepted operations.
        case writing
    }

    /// The number of a piece of work, in the order of the starts.
    typealias Number = WaitingLine<Void>.Ticket

    /// A task, or an exchange that runs in none.
    private struct Member {
        let work: Work
        /// `nil` for the moment between the number and the start.
        var running: LeadingWork?
        /// The waits for the end of an exchange.
        var waits: [UnsafeContinuation<Void, Never>] = []
    }

    private struct State {
        var isOpen = true
        var members = WaitingLine<Member>()

        /// Notes what has started; returns whether it may go on.
        mutating func started(_ number: Number, _ work: Work, _ running: LeadingWork) -> Bool {
            // Work that has ended already is not a member any more.
            _ = members.update(number) { $0.running = running }
            return isOpen || work == .writing
        }
    }

    private let executor: (any TaskExecutor)?
    private let state = Mutex(State())

    /// `executor` runs the tasks; `nil` means the global executor.
    init(executor: (any TaskExecutor)? = nil) { self.executor = executor }

    var isOpen: Bool { state.withLock { $0.isOpen } }

    /// The number of tasks that work.
    var taskCount: Int { working.count }

    private var working: [(ticket: Number, element: Member)] {
        state.withLock { state in
            state.members.everyone.filter {
                $0.element.work != .watching && $0.element.running != nil
            }
        }
    }

    /// Starts a task on `executor`, or on the supervisor's own if that is `nil`; the executor of
    /// `AwaitedWork` goes before both.
    ///
    /// If the cache is closing, a task that does not write is cancelled at once. The task is made
    /// outside the lock, because its executor, which may be the application's, runs then.
    @discardableResult
    func start(
        _ work: Work = .loading,
        on executor: (any TaskExecutor)? = nil,
        _ body: @escaping @Sendable () async -> Void
    ) -> Task<Void, Never> {
        let executor = AwaitedWork.executor ?? executor ?? self.executor
        let number = state.withLock { $0.members.enter(Member(work: work)) }
        let task: Task<Void, Never>
        if work == .watching {
            // A task that watches all flights must not inherit from the first caller.
            task = Task.detached(executorPreference: executor) { [self] in
                await body()
                end(number)
            }
        } else {
            task = Task(executorPreference: executor) { [self] in
                await body()
                end(number)
            }
        }
        let mayGoOn = state.withLock { $0.started(number, work, .task(task)) }
        if !mayGoOn { task.cancel() }
        return task
    }

    /// Starts an exchange that runs in no task; `start` gets the number with which it calls `end`.
    ///
    /// - Returns: The exchange; `nil` if the cache is closing, or `start` has begun none.
    func startExchange(
        _ start: (_ number: Number) -> (any LoopExchange)?
    ) -> (any LoopExchange)? {
        let number = state.withLock { $0.isOpen ? $0.members.enter(Member(work: .loading)) : nil }
        guard let number else { return nil }
        guard let exchange = start(number) else {
            end(number)
            return nil
        }
        let mayGoOn = state.withLock { $0.started(number, .loading, .exchange(exchange)) }
        if !mayGoOn { exchange.cancel() }
        return exchange
    }

    /// Notes the end of a task or an exchange.
    func end(_ number: Number) {
        let ended = state.withLock { $0.members.leave(number) }
        assert(ended != nil, "a task ends once")
        if let ended { for wait in ended.waits { wait.resume() } }
    }

    /// Waits for the end of a task or an exchange.
    private func waitForEnd(of number: Number, _ member: Member) async {
        if case .task(let task)? = member.running { return await task.value }
        await withUnsafeContinuation { continuation in
            let waits = state.withLock { state in
                state.members.update(number) { $0.waits.append(continuation) }
            }
            if !waits { continuation.resume() }
        }
    }

    /// Closes the cache: cancels loading tasks, and lets writing tasks continue.
    func close() {
        let others = state.withLock { state in
            state.isOpen = false
            return state.members.everyone.map(\.element).filter { $0.work != .writing }
        }
        for other in others { other.running?.cancel() }
    }

    /// Cancels loading tasks, and returns when all tasks have ended and accepted entries are
    /// written.
    ///
    /// Returns at once if the caller is cancelled, also if tasks still run.
    func shutDown() async {
        close()
        await waitUnlessCancelled { [self] in
            while true {
                let members = state.withLock { $0.members.everyone }
                if members.isEmpty { return }
                for (number, member) in members { await waitForEnd(of: number, member) }
            }
        }
    }

    /// Waits until the tasks that work now have ended, or the caller is cancelled.
    func waitUntilIdle() async {
        let working = working
        if working.isEmpty { return }
        await waitUnlessCancelled { [self] in
            for (number, member) in working { await waitForEnd(of: number, member) }
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
