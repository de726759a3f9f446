public import CacheEngine
public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// Requests and bodies in the types of Foundation.
extension HTTPCache {
    /// Answers a request of the URL loading system, and reads the body.
    ///
    /// The policy and the timeout are those of `request`. A redirect is returned like any other
    /// response. If the body breaks off and the policy lets a stored response take its place, that is
    /// returned.
    ///
    /// - Throws: `CacheError`: `.bodyTooLarge` if the body is longer than `limit`, `.notCached` if
    ///   nothing is stored and the policy forbids loading.
    public func data(
        for request: URLRequest,
        upTo limit: ByteCount = .megabytes(64)
    ) async throws -> (Data, HTTPURLResponse) {
        guard let asked = CacheRequest(request), let url = request.url else {
            throw CacheError(.requestInvalid, detail: "The URLRequest has no URL; give it one")
        }
        let (response, body) = try await gather(respond(to: asked), to: asked, upTo: limit)
        guard let head = response.urlResponse(url: url) else {
            throw CacheError(
                .originMisbehaved,
                detail: "Foundation has no form of the response with status \(response.status)"
            )
        }
        return (Data(body), head)
    }

    /// Answers a request of the URL loading system, and decodes the body of a 2xx response.
    ///
    /// - Throws: `CacheError.Code.originFailed` for another status, the errors of `data(for:upTo:)`,
    ///   and those of `decoder`.
    public func decode<Value: Decodable>(
        _ type: Value.Type,
        from request: URLRequest,
        using decoder: JSONDecoder = JSONDecoder(),
        upTo limit: ByteCount = .megabytes(64)
    ) async throws -> Value {
        let (data, head) = try await data(for: request, upTo: limit)
        guard (200..<300).contains(head.statusCode) else {
            throw CacheError(
                .originFailed,
                detail: "The response has status \(head.statusCode); only a 2xx is decoded"
            )
        }
        return try decoder.decode(type, from: data)
    }
}
