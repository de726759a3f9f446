import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

@testable import CacheProxy

/// A response on its way to a worker whose client leaves.
@Suite struct PendingResponseTests {
    /// The moment at which the client leaves.
    enum Moment: CaseIterable, CustomTestStringConvertible {
        case beforeTheResponse, beforeTheWorkerTakesIt, afterTheWorkerTookIt

        var testDescription: String { "\(self)" }
    }

    /// A responder whose test gives the response.
    private final class HeldResponder: Responder {
        private let asked = Mutex<(CacheRequest, PendingAnswer.Completion)?>(nil)

        func begin(
            _ request: consuming CacheRequest,
            _ answer: PendingAnswer,
            _ completion: @escaping PendingAnswer.Completion
        ) {
            let request = request
            asked.withLock { $0 = (request, completion) }
        }

        /// Answers with a body that holds the request, as one that a fetch measures does.
        func answer() {
            guard let (request, completion) = asked.withLock({ $0.take() }) else { return }
            let body = BodyStream(BodyOfRequest(request))
            completion(.success(CacheResponse(status: 200, body: body)))
        }
    }

    private final class BodyOfRequest: BodySource {
        let request: CacheRequest
        init(_ request: CacheRequest) { self.request = request }
        func next() async throws -> ByteChunk? { nil }
        func cancel() {}
    }

    /// The hook of a request holds its pending response, whose body may hold the request.
    @Test(arguments: Moment.allCases)
    func clientThatLeavesTakesItsResponseAlong(_ moment: Moment) async throws {
        let mailbox = try Mailbox()
        let left = WeakReference<PendingResponse>()
        do {
            let responder = HeldResponder()
            let pending = PendingResponse(ConnectionID(index: 0, generation: 0), mailbox)
            left.note(pending)
            var request = CacheRequest(url: "http://x/")
            request.options.onInformational = { pending.inform(status: $0, fields: $1) }
            pending.start(request, from: responder)
            if moment == .beforeTheResponse { pending.cancel() }
            responder.answer()
            if moment == .afterTheWorkerTookIt { _ = pending.takeResponse() }
            pending.cancel()
        }
        // The messages of an ended worker are dropped.
        mailbox.close([])
        #expect(await eventually(seconds: 5) { left.isReleased })
    }
}
