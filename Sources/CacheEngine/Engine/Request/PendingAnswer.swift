import Synchronization

/// The work for a request that began outside a task, as long as there is no response.
package final class PendingAnswer: Sendable {
    package typealias Completion = @Sendable (Result<CacheResponse, any Error>) -> Void

    private enum Work {
        case none
        /// The request leads a flight, which will call it.
        case lead(HTTPFlight, HTTPFlight.WaiterID)
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

    private let state = Mutex<(work: Work, isCancelled: Bool)>((.none, false))

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
        attach(
            Task(executorPreference: executor) {
                do {
                    completion(.success(try await response()))
                } catch { completion(.failure(error)) }
            }
        )
    }

    func attach(_ flight: HTTPFlight, _ waiter: HTTPFlight.WaiterID) {
        attach(.lead(flight, waiter))
    }

    /// Forgets a flight that has called.
    ///
    /// The flight holds its request, and that may hold this object through a hook of the request.
    func detach() {
        if Mutant.keepsLeadsThatAreOver.isOn { return }
        state.withLock { $0.work = .none }
    }

    private func attach(_ work: Work) {
        let isLate = state.withLock { state in
            state.work = work
            return state.isCancelled
        }
        if isLate { work.end() }
    }
}
