import HTTPCaching

/// What came of asking the origin, as soon as the head is known.
struct Arrival: Sendable {
    let answer: FlightAnswer
    let sharing: Sharing
    /// The body that has still to be brought home, where others may read it or it will be stored.
    var delivery: Delivery?

    /// Who may have the answer.
    enum Sharing: Hashable, Sendable {
        /// Everyone who waited.
        case everyone
        /// The asker alone.
        case askerOnly
        /// The asker alone, and it says nothing about how the key should be treated.
        case failure
    }
}

/// A body on its way to its readers and into the store.
struct Delivery: Sendable {
    let chain: BodyChain
    let body: MeasuredBody
    let origin: OriginAnswer
    let facts: StoredFacts
    let fields: FieldSection
    /// The key to store it under.
    let key: RequestKey
    let storage: Storage

    enum Storage: Hashable, Sendable {
        case whole
        /// One part of the representation.
        case part(ContentRange)
        /// Others may read it while it arrives, and it is not kept.
        case none
    }
}
