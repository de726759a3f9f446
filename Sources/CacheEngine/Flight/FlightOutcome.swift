/// The result of waiting for a flight.
enum FlightOutcome<Answer: Sendable>: Sendable {
    /// The origin answered; `isAsker` is true for the request that was sent.
    case answered(Answer, isAsker: Bool)
    /// The request must fetch on its own.
    case goAlone(FlightEscape)
    /// The request has waited too long, and must fetch on its own; until it has ended, its desk
    /// counts it under this key, which need not be the one that it waited under.
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
        case elected(Request, attempt: Int)
        /// All waiters have been told; no attempt follows.
        case over
        /// The attempt had already been given up.
        case superseded
    }
}

/// The requests that may have an answer.
enum FlightAudience: Hashable, Sendable, CaseIterable {
    /// Waiters, and requests that arrive while the body does.
    case everyone
    /// Current waiters: the answer does not suit later requests.
    case waiting
    /// The request that was sent; the others fetch on their own.
    case asker
}

/// The reason why a request fetches on its own.
enum FlightEscape: String, CaseIterable, Hashable, Sendable {
    /// The flight's answer belongs to its own request only.
    case unshareable
    /// The key's recent answers were not shareable.
    case hitForMiss
    /// The request waited for the maximum time.
    case waitedTooLong
    /// The flight has the maximum number of waiters.
    case crowded
    /// There are too many flights.
    case tableFull
    /// The request looked and waited the maximum number of times.
    case lookedTooOften
    /// The request may not join a flight, or may not lead one.
    case mayNotShare
}
