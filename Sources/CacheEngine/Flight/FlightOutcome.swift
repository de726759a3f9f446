/// What waiting for a flight came to.
enum FlightOutcome<Answer: Sendable>: Sendable {
    /// The origin answered; `isLeader` for the request that was sent.
    case answered(Answer, isLeader: Bool)
    /// The answer may not be shared: ask for yourself.
    case goAlone(FlightEscape)
    /// Look into the store again.
    case lookAgain
    /// Every attempt failed, with this error; `isShared` when none of them was this request's own.
    case failed(any Error, isShared: Bool)
}

/// Who may have an answer.
enum FlightAudience: Hashable, Sendable, CaseIterable {
    /// Those who wait, and those who come while the body arrives.
    case everyone
    /// Those who wait now: the answer is not good for anybody who asks later.
    case waiting
    /// The request that was sent; the others ask for themselves.
    case leader
}

/// Why a request left the crowd and asked for itself.
enum FlightEscape: String, Hashable, Sendable, CaseIterable {
    /// The flight's answer belongs to its own request only.
    case unshareable
    /// The key's answers were not shareable a moment ago.
    case hitForMiss
    /// It waited as long as a waiter may.
    case waitedTooLong
    /// Too many wait already.
    case crowded
    /// There are too many flights.
    case tableFull
    /// It looked, waited and looked as often as a request may.
    case lookedTooOften
    /// Somebody asked for it.
    case requested
}
