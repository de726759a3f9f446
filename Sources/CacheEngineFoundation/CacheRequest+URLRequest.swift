public import CacheEngine

#if canImport(FoundationNetworking)
    internal import Foundation
    public import FoundationNetworking
#else
    public import Foundation
#endif

extension CacheRequest {
    /// Creates a request from one of the URL loading system; `nil` if it has no URL.
    ///
    /// The policy is set only if it differs from `.useProtocolCachePolicy`; otherwise the cache's
    /// default applies. A body from `httpBodyStream` is read once, as the request is sent.
    public init?(_ request: URLRequest) {
        guard let url = request.url?.absoluteString else { return nil }
        self.init(
            method: HTTPMethod(request.httpMethod ?? "GET"),
            url: url,
            fields: HeaderFields(request.allHTTPHeaderFields ?? [:]),
            body: request.httpBody.map { BodyStream(ByteChunk($0)) }
                ?? request.httpBodyStream.map { BodyStream(InputContent($0)) }
        )
        if request.cachePolicy != .useProtocolCachePolicy {
            options.policy = CachePolicy(request.cachePolicy)
        }
        if request.timeoutInterval > 0 {
            options.timeout = Duration(clampingSeconds: request.timeoutInterval)
        }
    }
}

extension URLRequest {
    /// Creates a request for the URL loading system, without the body.
    ///
    /// Returns `nil` if Foundation does not accept the URL.
    public init?(_ request: CacheRequest) {
        guard let url = URL(string: request.url) else { return nil }
        self.init(url: url)
        httpMethod = request.method.name
        for (name, value) in request.fields.pairs { addValue(value, forHTTPHeaderField: name) }
        if let policy = request.options.policy.flatMap(URLRequest.CachePolicy.init) {
            cachePolicy = policy
        }
        if let timeout = request.options.timeout { timeoutInterval = timeout.seconds }
    }
}

extension HeaderFields {
    /// Creates fields from a dictionary, in the order of their names.
    public init(_ fields: [String: String]) {
        self.init(fields.sorted { $0.key < $1.key }.map { ($0.key, $0.value) })
    }

    /// The fields as a dictionary; lines with the same name are joined by a comma (RFC 9110 §5.2).
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
