/// The result of waiting for a flight.
enum FlightOutcome: Sendable {
    /// The origin answered; `isAsker` is true for the request that was sent.
    case answered(FlightAnswer, isAsker: Bool)
    /// The request must fetch on its own.
    case goAlone(FlightEscape)
    /// The request has waited too long, and must fetch on its own. Its desk counts it under this
    /// key until it ends; it may have waited under another key.
    ///
    /// Indirect, because it is rare, and frames that wait hold outcomes.
    indirect case escape(KeyHash)
    /// The request must look into the store again.
    case lookAgain
    /// Every attempt failed, with this error; `isShared` means that none was this request's own.
    case failed(any Error, isShared: Bool)
}

extension Flight {
    /// The consequence of a failed attempt.
    enum Failure {
        /// This request is sent next.
        case elected(FetchContext, attempt: Int)
        /// All waiters have been told; no attempt follows.
        case over
        /// The attempt had already been given up.
        case superseded
    }
}

/// The way in which a waiter is told the outcome of its flight.
enum OutcomeBell: Sendable {
    /// The waiter is a task that sleeps.
    case continuation(UnsafeContinuation<FlightOutcome, Never>)
    /// The waiter has no task.
    case call(@Sendable (FlightOutcome) -> Void)

    func ring(_ outcome: FlightOutcome) {
        switch self {
        case .continuation(let continuation): continuation.resume(returning: outcome)
        case .call(let call): call(outcome)
        }
    }
}
