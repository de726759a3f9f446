import HTTPCaching

typealias HTTPFlight = Flight<Load, FlightAnswer>
typealias HTTPFlightDesk = FlightDesk<Load, FlightAnswer>

/// One request that the origin is to be asked on behalf of.
///
/// An object, and so is the answer: ten thousand who wait for a flight share what they hold.
final class Load: Sendable {
    let demand: Demand
    /// What may be used of what was looked up; its key is that of what is fetched, as far as known: of
    /// the variant, where there are some.
    let selection: Selection
    /// What was looked up: the client may want no part of it.
    let found: Selection
    let ticket: RemovalLedger.Ticket
    let purpose: Purpose

    init(
        _ demand: Demand,
        _ selection: Selection,
        found: Selection? = nil,
        _ ticket: RemovalLedger.Ticket,
        purpose: Purpose = .answer
    ) {
        self.demand = demand
        self.selection = selection
        self.found = found ?? selection
        self.ticket = ticket
        self.purpose = purpose
    }

    var request: CacheRequest { demand.request }
    var facts: RequestFacts { demand.facts }
    var policy: CachePolicy { demand.policy }
    var key: RequestKey { demand.key }

    /// The same for one attempt of a flight.
    func licensed(by licence: FlightLicence) -> Load {
        var ticket = ticket
        ticket.licence = licence
        return Load(demand, selection, ticket, purpose: purpose)
    }

    /// The same under another policy.
    func with(_ policy: CachePolicy) -> Load {
        let demand = Demand(request, policy, key)
        return Load(demand, selection, found: found, ticket, purpose: purpose)
    }

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
final class FlightAnswer: Sendable {
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
    /// Both once more, encoded: every answer made of this one shares them.
    let lines: ByteChunk
    let sharedLines: ByteChunk
    let content: Content
    /// What reuse is decided by, where the answer may be stored.
    let facts: StoredFacts?
    let refusal: StoreRefusalReason?
    /// How the answer selects among requests, and the key of the one it was fetched for.
    let variance: Variance?

    init(
        status: Int,
        fields: FieldSection,
        sharedFields: FieldSection? = nil,
        content: Content,
        facts: StoredFacts? = nil,
        refusal: StoreRefusalReason? = nil,
        variance: Variance? = nil
    ) {
        self.status = status
        self.fields = fields
        self.sharedFields = sharedFields ?? fields
        let lines = fields.withUnsafeBytes { ByteChunk(copying: $0) }
        self.lines = lines
        sharedLines = sharedFields?.withUnsafeBytes { ByteChunk(copying: $0) } ?? lines
        self.content = content
        self.facts = facts
        self.refusal = refusal
        self.variance = variance
    }

    struct Variance: Sendable {
        let index: VariantIndex
        let vary: Vary
        let key: RequestKey
    }
}
