import CacheEngine
import HTTPCaching

/// The cache as the responder of a server.
struct CacheResponder: Responder {
    let cache: HTTPCache

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
}
