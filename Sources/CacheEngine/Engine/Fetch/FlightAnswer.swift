import HTTPCaching

/// The origin's response for every request that waited for it.
final class FlightAnswer: Sendable {
    enum Content: Sendable {
        /// The stored response was confirmed.
        case confirmed(StoredResponse)
        /// Another machine of the fleet has stored the response.
        case found(StoredResponse)
        /// Every waiter may read the body.
        case shared(SharedBody)
        /// Only the request that was sent may read the body.
        case own(BodyStream)
    }

    /// The origin's status.
    let status: Int
    /// The fields for the request that was sent.
    let fields: FieldSection
    /// The fields for the other requests, as they are stored.
    let sharedFields: FieldSection
    let content: Content
    /// The facts that decide reuse, if the response may be stored.
    let facts: StoredFacts?
    let refusal: StoreRefusalReason?
    /// Whether a removal, or a newer flight, forbids the store already.
    let isForbidden: Bool
    /// The request fields that select the response; `nil` if it has no Vary.
    let variance: Variance?
    /// The stored bytes to join with the body, if the body is the rest of a range.
    let rest: RestOfRange?
    /// The store that is left to the callers.
    let pendingStore: PendingStore?
    /// Whether a newer response has overtaken this one, if its body is still arriving.
    let arrival: ArrivalMark?

    init(
        status: Int,
        fields: FieldSection,
        sharedFields: FieldSection? = nil,
        content: Content,
        facts: StoredFacts? = nil,
        refusal: StoreRefusalReason? = nil,
        isForbidden: Bool = false,
        variance: Variance? = nil,
        rest: RestOfRange? = nil,
        pendingStore: PendingStore? = nil,
        arrival: ArrivalMark? = nil
    ) {
        self.status = status
        self.fields = fields
        self.sharedFields = sharedFields ?? fields
        self.content = content
        self.facts = facts
        self.refusal = refusal
        self.isForbidden = isForbidden
        self.variance = variance
        self.rest = rest
        self.pendingStore = pendingStore
        self.arrival = arrival
    }

    /// The facts that decide whether another request may use the response.
    var reusableFacts: StoredFacts? {
        switch content {
        case .confirmed(let stored), .found(let stored): stored.facts
        case .shared, .own: facts
        }
    }

    /// Whether the response may be stored, as far as its head tells.
    var mayBeStored: Bool { facts != nil && refusal == nil && !isForbidden }

    /// The response for the whole range, of which this response is the rest.
    func joined(to rest: RestOfRange) -> FlightAnswer {
        FlightAnswer(
            status: status,
            fields: rest.fields(with: fields),
            content: content,
            facts: facts,
            refusal: refusal,
            isForbidden: isForbidden,
            variance: variance,
            rest: rest,
            arrival: arrival
        )
    }
}
