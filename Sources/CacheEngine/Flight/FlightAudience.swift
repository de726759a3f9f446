/// The requests that may have an answer.
enum FlightAudience: Hashable, Sendable, CaseIterable {
    /// Waiters, and requests that arrive while the body does.
    case everyone
    /// Waiters that boarded before the head: the answer does not suit later requests.
    case waiting
    /// The request that was sent; the others fetch on their own.
    case asker
    /// The request that was sent, because of its cookies; those with cookies fetch on their own, and
    /// the others look again.
    case askerWithCookie
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
