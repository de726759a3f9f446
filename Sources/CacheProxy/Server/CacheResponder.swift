import CacheEngine
import HTTPCaching

/// The cache as the responder of a server.
struct CacheResponder: Responder {
    let cache: HTTPCache

    /// The largest body that is copied behind its head.
    ///
    /// Copying it costs less than holding its entry, which all threads that hit one key would write
    /// to.
    private static let copiedBodyBytesMax = 4 << 10

    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        cache.answerWithoutWaiting(request, bodyBytesMax: Self.copiedBodyBytesMax, read)
    }

    nonisolated(nonsending) func respond(to request: CacheRequest) async throws -> CacheResponse {
        guard request.method == .options, !Mutant.ignoresMaxForwards.isOn else {
            return try await cache.respondWaiting(to: request)
        }
        return try await respondToOptions(request)
    }

    /// OPTIONS goes no further than its `Max-Forwards` says (RFC 9110 §7.6.2).
    ///
    /// Not inlined, so that the frame of a request that waits stays small.
    @inline(never)
    nonisolated(nonsending) private func respondToOptions(
        _ request: CacheRequest
    ) async throws -> CacheResponse {
        var section = request.fields.section
        switch MaxForwards(section) {
        case .unlimited: return try await cache.respondWaiting(to: request)
        case .exhausted: return GatewayError.options()
        case .next(let count):
            section.set("Max-Forwards", String(count))
            var forwarded = request
            forwarded.fields = HeaderFields(section)
            return try await cache.respondWaiting(to: forwarded)
        }
    }
}
