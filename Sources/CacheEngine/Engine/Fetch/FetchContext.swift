import HTTPCaching

typealias HTTPFlight = Flight<FetchContext, FlightAnswer>
typealias HTTPFlightDesk = FlightDesk<FetchContext, FlightAnswer>

/// One request that may be sent to the origin, and everything known when the fetch begins.
///
/// An object: every step of a fetch, and every request that waits for it, shares one.
final class FetchContext: Sendable {
    /// The purpose of a fetch.
    enum Purpose: Hashable, Sendable {
        /// A request waits for the response.
        case answer
        /// The stored response is refreshed, and no request waits.
        case refresh
        /// A POST is passed on, and its response may be stored for later GETs.
        case post
    }

    let request: CacheRequest
    let facts: RequestFacts
    let policy: CachePolicy
    /// The key of the resource.
    let key: RequestKey
    /// The result of the look-up, as far as the fetch may use it; its `flightKey` is that of the
    /// response that is fetched, as far as known: of the variant, if there are variants.
    let lookup: LookupResult
    /// The result of the look-up, even if the client does not accept a stored response.
    let found: LookupResult
    /// Taken before the look-up: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket
    let purpose: Purpose
    /// The progress of the upload; `nil` if the request has no content.
    let upload: UploadProgress?

    init(
        _ request: CacheRequest,
        _ facts: RequestFacts,
        _ policy: CachePolicy,
        _ key: RequestKey,
        lookup: LookupResult,
        found: LookupResult? = nil,
        ticket: RemovalLedger.Ticket,
        purpose: Purpose = .answer
    ) {
        self.request = request
        self.facts = facts
        self.policy = policy
        self.key = key
        self.lookup = lookup
        self.found = found ?? lookup
        self.ticket = ticket
        self.purpose = purpose
        upload = request.body.map { UploadProgress(of: $0) }
    }

    private init(_ other: FetchContext, policy: CachePolicy, _ lookup: LookupResult? = nil) {
        request = other.request
        facts = other.facts
        self.policy = policy
        key = other.key
        self.lookup = lookup ?? other.lookup
        found = lookup ?? other.found
        ticket = other.ticket
        purpose = other.purpose
        upload = other.upload
    }

    /// This context for a fetch whose response is not stored.
    var withoutStoring: FetchContext {
        FetchContext(self, policy: policy.with { $0.writes = false })
    }

    /// This context with another stored response.
    func with(_ lookup: LookupResult) -> FetchContext {
        FetchContext(self, policy: policy, lookup)
    }

    /// Whether both requests send the same fields, so that the origin would send both the same
    /// response.
    func sendsSameFields(as other: FetchContext) -> Bool {
        request.fields.section.bytes == other.request.fields.section.bytes
    }

    /// Whether the origin answers this client, and not the public: in a shared cache, a request with
    /// `Authorization`, or with `Cookie` if so configured.
    func isPersonal(_ configuration: HTTPCache.Configuration) -> Bool {
        guard configuration.mode == .shared else { return false }
        return facts.hasAuthorization
            || facts.flags.contains(.hasCookie) && configuration.caching.cookieRequests == .alone
    }

    /// The request as the rules of storing see it: a request under a key of the caller's own is
    /// judged as a GET.
    var factsForStoring: RequestFacts {
        guard request.options.key != nil else { return facts }
        var facts = facts
        facts.method = .get
        return facts
    }

    /// Whether a fetch that other requests share leaves out the client's conditions: the whole
    /// response is fetched, and the conditions are evaluated on it.
    func leavesOutConditions(_ rules: CachingRules) -> Bool {
        guard rules.conditionMiss == .whole, confirmable == nil, policy.reads, policy.writes,
            request.method == .get || request.method == .query, !facts.hasRange
        else { return false }
        return !facts.flags.isDisjoint(with: .readConditions)
            && facts.flags.isDisjoint(with: .writeConditions)
    }

    /// Whether the origin is asked for a part; one that is stored whole is confirmed, or fetched
    /// whole.
    var asksForPart: Bool {
        facts.hasRange && (confirmable == nil || Mutant.fetchesAWholeForEachRange.isOn)
    }

    /// The whole stored response that the policy lets the fetch use.
    var confirmable: StoredResponse? {
        guard policy.reads, let stored = lookup.stored,
            !stored.facts.flags.contains(.isPartial)
        else { return nil }
        return stored
    }
}
