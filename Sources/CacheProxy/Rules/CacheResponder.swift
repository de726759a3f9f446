import CacheEngine
import HTTPCaching

/// The cache as the responder of a server.
struct CacheResponder: Responder {
    let cache: HTTPCache
    /// The engine's limit for a request whose content arrives over time, from its last movement to
    /// the head of the response.
    let uploadTime: Duration

    func immediateAnswer(
        to request: CacheRequest,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        cache.immediateAnswer(to: request, bodyBytesMax: Worker.copiedBytesMax, read)
    }

    func begin(
        _ request: consuming CacheRequest,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        if Self.arrivesOverTime(request) { request.options.timeout = uploadTime }
        guard request.method.kind == .options, !Mutant.ignoresMaxForwards.isOn else {
            return cache.begin(request, answer, completion)
        }
        // OPTIONS goes no further than its `Max-Forwards` says (RFC 9110 §7.6.2).
        switch MaxForwards(request.fields.section) {
        case .unlimited: break
        case .exhausted: return completion(.success(GatewayError.options()))
        case .next(let count):
            var section = request.fields.section
            section.set("Max-Forwards", String(count))
            request.fields = HeaderFields(section)
        }
        cache.begin(request, answer, completion)
    }

    /// Whether the request has content that is not in memory.
    private static func arrivesOverTime(_ request: CacheRequest) -> Bool {
        guard let body = request.body, !Mutant.limitsUploadsAsResponses.isOn else { return false }
        return !body.isAvailable
    }
}
