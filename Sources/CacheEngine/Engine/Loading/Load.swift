import HTTPCaching

typealias HTTPFlight = Flight<Load, FlightAnswer>
typealias HTTPFlightDesk = FlightDesk<Load, FlightAnswer>

/// One request that the origin is to be asked on behalf of.
struct Load: Sendable {
    let request: CacheRequest
    let facts: RequestFacts
    let policy: CachePolicy
    /// The key of the resource.
    let key: RequestKey
    /// The key of what is fetched, as far as known: of the variant, where there are some.
    let selection: Selection
    var ticket: RemovalLedger.Ticket
    let purpose: Purpose

    enum Purpose: Hashable, Sendable {
        /// Somebody waits for the answer.
        case answer
        /// The stored answer is to be brought up to date.
        case refresh
    }

    /// The stored response to confirm, where the policy lets it be used.
    var stored: StoredResponse? {
        guard policy.reads, let stored = selection.stored,
            !stored.facts.flags.contains(.isPartial)
        else { return nil }
        return stored
    }
}

/// What the origin's head came to, for everyone who waited for it.
struct FlightAnswer: Sendable {
    enum Content: Sendable {
        /// The stored response was confirmed.
        case confirmed(StoredResponse)
        /// The body arrives, for all.
        case arriving(BodyChain)
        /// The body is the asker's own.
        case own(BodyStream)
    }

    /// The origin's status.
    let status: Int
    /// The fields for the asker itself.
    let fields: FieldSection
    /// The fields for everybody else, as they are stored.
    let sharedFields: FieldSection
    let content: Content
    /// What reuse is decided by, where the answer may be stored.
    var facts: StoredFacts?
    var refusal: StoreRefusalReason?
    /// How the answer selects among requests, and the key of the one it was fetched for.
    var variance: Variance?

    struct Variance: Sendable {
        let index: VariantIndex
        let vary: Vary
        let key: RequestKey
    }
}
