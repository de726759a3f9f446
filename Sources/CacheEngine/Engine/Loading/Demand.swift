import HTTPCaching

/// A request and all that is known of it without looking.
///
/// An object: whoever deals with the request holds a reference to it, and no copy.
final class Demand: Sendable {
    let request: CacheRequest
    let facts: RequestFacts
    let policy: CachePolicy
    /// The key of the resource.
    let key: RequestKey

    init(_ request: CacheRequest, _ policy: CachePolicy, _ key: RequestKey) {
        self.request = request
        self.policy = policy
        self.key = key
        facts = RequestFacts(method: request.method.kind, fields: request.fields.section)
    }

    /// Whether the cache has a say in this kind of request.
    var isCacheable: Bool {
        (policy.reads || policy.writes) && request.isAnsweredByKey
    }
}
