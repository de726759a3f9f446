/// The way in which a waiter is told the outcome of its flight.
enum OutcomeBell<Answer: Sendable>: Sendable {
    /// The waiter is a task that sleeps.
    case continuation(UnsafeContinuation<FlightOutcome<Answer>, Never>)
    /// The waiter has no task.
    case call(@Sendable (FlightOutcome<Answer>) -> Void)

    func ring(_ outcome: FlightOutcome<Answer>) {
        switch self {
        case .continuation(let continuation): continuation.resume(returning: outcome)
        case .call(let call): call(outcome)
        }
    }
}
