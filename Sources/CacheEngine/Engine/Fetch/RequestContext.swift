import HTTPCaching

/// One request, and everything that is known of it without a look-up.
///
/// An object: the steps of the request, and its fetches, share one.
final class RequestContext: Sendable {
    let request: CacheRequest
    let facts: RequestFacts
    let policy: CachePolicy
    let terms: ReuseTerms
    /// The key of the resource.
    let key: RequestKey
    /// Whether responses of the request's scheme are stored.
    let isStorable: Bool
    /// The arrival time of the request, on the monotonic clock.
    let startedNanoseconds: UInt64
    /// The end of the request's time for a head, on the monotonic clock, for all its waits
    /// together.
    let untilNanoseconds: UInt64
    /// The time that one attempt at a head may take: the longer of `OriginLimits.maximumHeadTime` and
    /// the request's own timeout.
    var headNanoseconds: UInt64 { untilNanoseconds - startedNanoseconds }
    /// The fetches that the request is part of.
    let ancestors: [AncestorFetch]

    init(
        _ request: consuming CacheRequest,
        _ facts: RequestFacts,
        _ policy: CachePolicy,
        _ terms: ReuseTerms,
        _ key: RequestKey,
        isStorable: Bool,
        startedNanoseconds: UInt64,
        untilNanoseconds: UInt64,
        ancestors: [AncestorFetch]
    ) {
        self.request = request
        self.facts = facts
        self.policy = policy
        self.terms = terms
        self.key = key
        self.isStorable = isStorable
        self.startedNanoseconds = startedNanoseconds
        self.untilNanoseconds = untilNanoseconds
        self.ancestors = ancestors
    }

    /// This context for another request for the same resource.
    func with(_ request: consuming CacheRequest, _ facts: RequestFacts) -> RequestContext {
        RequestContext(
            request,
            facts,
            policy,
            terms,
            key,
            isStorable: isStorable,
            startedNanoseconds: startedNanoseconds,
            untilNanoseconds: untilNanoseconds,
            ancestors: ancestors
        )
    }
}
