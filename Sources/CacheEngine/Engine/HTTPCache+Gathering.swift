/// Bodies that are gathered whole before they are used, so that a stored response can still stand in
/// for one that breaks off.
extension HTTPCache {
    /// Gathers the body of the response to a request, or of the stored response that stands in for it.
    ///
    /// - Throws: `CacheError.Code.bodyTooLarge` if the body is longer than `limit`.
    package func gather(
        _ response: CacheResponse,
        to request: CacheRequest,
        upTo limit: ByteCount
    ) async throws -> (CacheResponse, ByteChunk) {
        do {
            return (response, try await response.body.collect(upTo: limit))
        } catch {
            let stored = try await standIn(for: response, to: request, policy: nil, after: error)
            return (stored, try await stored.body.collect(upTo: limit))
        }
    }

    /// The stored response in place of `response`, whose body could not be gathered.
    ///
    /// A body that ends with its reader's task may seem to have broken off.
    ///
    /// - Throws: `error`, if the fault is not the origin's, or the policy allows no stored response.
    func standIn(
        for response: CacheResponse,
        to request: CacheRequest,
        policy: CachePolicy?,
        after error: any Error
    ) async throws -> CacheResponse {
        guard !response.info.didUseCachedResponse, Self.isOfTheOrigin(error),
            !Task.isCancelled
        else { throw error }
        return try await RequestRunner(services, request, policy).standIn(after: error)
    }

    /// Whether the origin is at fault; an origin may throw errors of its own.
    private static func isOfTheOrigin(_ error: any Error) -> Bool {
        guard let error = error as? CacheError else { return true }
        switch error.code {
        case .originFailed, .originUnreachable, .originTimedOut, .originMisbehaved, .bodyTruncated:
            return true
        default: return false
        }
    }
}
