/// An exchange with an origin that runs in no task, but on an event loop.
package protocol LoopExchange: AnyObject, Sendable {
    /// Ends the exchange; without a response its completion gets a failure.
    func cancel()
}

/// The work that leads a flight.
enum LeadingWork: Sendable {
    case task(Task<Void, Never>)
    case exchange(any LoopExchange)

    func cancel() {
        switch self {
        case .task(let task): task.cancel()
        case .exchange where Mutant.leavesExchangesRunning.isOn: break
        case .exchange(let exchange): exchange.cancel()
        }
    }
}
