public import CacheEngine

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CacheRequest {
    /// The request as the cache takes it; nil when it has no URL.
    ///
    /// The policy is set where the request names another than the protocol's own, which leaves the
    /// cache's default in force. A body that is a stream of its own is not taken over.
    public init?(_ request: URLRequest) {
        guard let url = request.url?.absoluteString else { return nil }
        self.init(
            method: Method(request.httpMethod ?? "GET"),
            url: url,
            fields: HeaderFields(request.allHTTPHeaderFields ?? [:]),
            body: request.httpBody.map { BodyStream(ByteChunk($0)) }
        )
        if request.cachePolicy != .useProtocolCachePolicy {
            options.policy = CachePolicy(request.cachePolicy)
        }
        if request.timeoutInterval > 0 { options.timeoutSeconds = request.timeoutInterval }
    }
}

extension URLRequest {
    /// The request as the URL loading system takes it, without its body; nil when its URL is none
    /// to Foundation.
    public init?(_ request: CacheRequest) {
        guard let url = URL(string: request.url) else { return nil }
        self.init(url: url)
        httpMethod = request.method.name
        for (name, value) in request.fields.pairs { addValue(value, forHTTPHeaderField: name) }
        if let policy = request.options.policy.flatMap(URLRequest.CachePolicy.init) {
            cachePolicy = policy
        }
        if let seconds = request.options.timeoutSeconds { timeoutInterval = seconds }
    }
}

extension HeaderFields {
    /// The fields of a dictionary, in the order of their names.
    public init(_ fields: [String: String]) {
        self.init(fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// The fields as a dictionary, lines of one name joined by a comma (RFC 9110 §5.2).
    public var dictionary: [String: String] {
        var dictionary: [String: String] = [:]
        var spelling: [String: String] = [:]
        for (name, value) in pairs {
            let known = spelling[name.lowercased()] ?? name
            spelling[name.lowercased()] = known
            dictionary[known] = dictionary[known].map { $0 + ", " + value } ?? value
        }
        return dictionary
    }
}
