public import CacheEngine

/// An origin that fails in every way: it throws, hangs, is slow and returns false answers.
///
/// It wraps any origin and treats each request as its plan says. A hang before the effect stands
/// for an origin that never saw the request, a hang after it for an answer that does not arrive.
public final class NemesisOrigin: Origin {
    private let inner: any Origin
    private let nemesis: Nemesis

    /// Creates a nemesis of `inner`.
    public init(
        _ inner: any Origin,
        clock: any CacheClock = SystemClock(),
        plan: NemesisPlan = .harmless
    ) {
        self.inner = inner
        nemesis = Nemesis(plan, clock)
    }

    /// Follows another plan from now on; calls that hang continue to hang.
    public func follow(_ plan: NemesisPlan) { nemesis.follow(plan) }

    /// Releases every request that hangs.
    public func release() { nemesis.release() }

    /// The number of requests that hang.
    public var hungCount: Int { nemesis.hungCount }

    /// The requests so far, in order of arrival.
    public var calls: [NemesisCall] { nemesis.calls }

    /// Answers, fails, hangs or returns a false answer.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try await nemesis.perform(
            .fetch,
            request.url,
            { try await inner.fetch(request) },
            lying: { Self.lie($0, $1, to: request) }
        )
    }

    private static func lie(
        _ lie: Misdeed.Lie,
        _ response: OriginResponse,
        to request: OriginRequest
    ) -> OriginResponse {
        var response = response
        switch lie {
        case .mixesUp:
            let isConditional = ["If-None-Match", "If-Modified-Since"].contains {
                request.fields.contains($0)
            }
            return isConditional ? response : OriginResponse(status: 304, fields: response.fields)
        case .damages: response.body = BodyStream(BreakingBody(response.body))
        case .miscounts:
            guard request.method != .head, response.status == 200 else { return response }
            // An invalid length is a lie already.
            if let length = response.fields["Content-Length"], Int(length) == nil {
                return response
            }
            response.fields["Content-Length"] = "10000000"
        }
        return response
    }
}

/// A body that yields its first piece and then an error.
private actor BreakingBody: BodySource {
    private var first: BodyStream?

    init(_ body: BodyStream) { first = body }

    func next() async throws -> ByteChunk? {
        guard let body = first.take() else {
            throw CacheError(.originFailed, detail: "The connection broke")
        }
        var pieces = body.makeAsyncIterator()
        return try await pieces.next()
    }

    nonisolated func cancel() {}
}
