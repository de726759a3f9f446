import HTTPCaching

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

    /// The request, which the policy of this fetch may allow less than its own.
    let asked: RequestContext
    let policy: CachePolicy
    /// The result of the look-up that the fetch may use; its `flightKey` is the key of the variant
    /// if the variant is known, else that of the resource.
    let lookup: LookupResult
    /// The result of the look-up, even if the client does not accept a stored response.
    let found: LookupResult
    /// Taken before the look-up: a removal after it keeps the response from being stored.
    let ticket: RemovalLedger.Ticket
    let purpose: Purpose
    /// The progress of the upload; `nil` if the request has no content.
    let upload: UploadProgress?

    init(
        _ asked: RequestContext,
        policy: CachePolicy? = nil,
        lookup: consuming LookupResult,
        found: consuming LookupResult? = nil,
        ticket: consuming RemovalLedger.Ticket,
        purpose: Purpose = .answer
    ) {
        self.asked = asked
        self.policy = policy ?? asked.policy
        switch consume found {
        case .some(let found): self.found = found
        case .none: self.found = copy lookup
        }
        self.lookup = lookup
        self.ticket = ticket
        self.purpose = purpose
        upload = asked.request.body.map { UploadProgress(of: $0) }
    }

    private init(_ other: FetchContext, policy: CachePolicy, _ lookup: LookupResult? = nil) {
        asked = other.asked
        self.policy = policy
        self.lookup = lookup ?? other.lookup
        found = lookup ?? other.found
        ticket = other.ticket
        purpose = other.purpose
        upload = other.upload
    }

    var facts: RequestFacts { asked.facts }
    /// The key of the resource.
    var key: RequestKey { asked.key }

    /// The end of the request's time for a head, on the monotonic clock.
    ///
    /// The time of the request's own upload must not count against the origin.
    var untilNanoseconds: UInt64 { upload == nil ? asked.untilNanoseconds : .max }

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
        asked.request.fields.section.bytes == other.asked.request.fields.section.bytes
    }

    /// Whether the origin answers this client, and not the public: in a shared cache, a request with
    /// `Authorization`, or with `Cookie` if so configured.
    func isPersonal(_ configuration: HTTPCache.Configuration) -> Bool {
        guard configuration.mode == .shared else { return false }
        return facts.hasAuthorization
            || facts.flags.contains(.hasCookie) && configuration.caching.cookieRequests == .alone
    }

    /// Whether the request has cookies that may keep its response from other clients.
    func hasCookie(_ configuration: HTTPCache.Configuration) -> Bool {
        configuration.mode == .shared && facts.flags.contains(.hasCookie)
    }

    /// The request as the rules of storing see it: a request under a key of the caller's own is
    /// judged as a GET.
    var factsForStoring: RequestFacts {
        guard asked.request.options.key != nil else { return facts }
        var facts = facts
        facts.method = .get
        return facts
    }

    /// Whether a fetch that other requests share leaves out the client's conditions: the whole
    /// response is fetched, and the conditions are evaluated on it.
    func leavesOutConditions(_ rules: CachingRules) -> Bool {
        guard rules.conditionMiss == .whole, confirmable == nil, policy.reads, policy.writes,
            facts.method == .get || facts.method == .query, !facts.hasRange
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
