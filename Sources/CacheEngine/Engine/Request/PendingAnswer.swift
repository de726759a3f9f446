import Synchronization

/// The work for a request that began outside a task, as long as there is no response.
package final class PendingAnswer: Sendable {
    package typealias Completion = @Sendable (consuming Result<CacheResponse, any Error>) -> Void

    private enum Work {
        case none
        /// The request leads a flight, which will call it.
        case lead(Flight, Flight.WaiterID)
        case task(Task<Void, Never>)

        /// Called outside the lock: the flight may call the request at once.
        func end() {
            switch self {
            case .none: break
            case .lead(let flight, let waiter):
                if Mutant.keepsLeadsOfGoneClients.isOn { break }
                flight.leave(waiter, with: .failed(CancellationError(), isShared: false))
            case .task(let task): task.cancel()
            }
        }
    }

    private struct State {
        var work = Work.none
        /// The number of works so far.
        var turn = 0
        var isCancelled = false
    }

    private let state = Mutex(State())

    package init() {}

    /// Ends the work, now and later: nobody needs the response any more.
    package func cancel() {
        let work = state.withLock { state in
            state.isCancelled = true
            return state.work
        }
        work.end()
    }

    package func attach(_ task: Task<Void, Never>) { attach(.task(task)) }

    /// Gets the response in a task on `executor`.
    package func startTask(
        on executor: (any TaskExecutor)?,
        _ completion: @escaping Completion,
        _ response: @escaping @Sendable () async throws -> CacheResponse
    ) {
        let turn = state.withLock { $0.turn }
        let task = Task(executorPreference: executor) {
            do {
                completion(.success(try await response()))
            } catch { completion(.failure(error)) }
        }
        attach(.task(task), unlessAfter: turn)
    }

    func attach(_ flight: Flight, _ waiter: Flight.WaiterID) {
        attach(.lead(flight, waiter))
    }

    /// Forgets a flight that has called.
    ///
    /// The flight holds its request, and that may hold this object through a hook of the request.
    func detach() {
        if Mutant.keepsLeadsThatAreOver.isOn { return }
        state.withLock { $0.work = .none }
    }

    /// Notes the work, unless another one was noted after `turn`: a task may have ended, and its
    /// response have brought new work, before it is noted itself.
    private func attach(_ work: Work, unlessAfter turn: Int? = nil) {
        let isLate = state.withLock { state in
            guard turn == nil || turn == state.turn else { return false }
            state.turn += 1
            state.work = work
            return state.isCancelled
        }
        if isLate { work.end() }
    }
}
