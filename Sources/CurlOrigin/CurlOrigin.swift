public import CacheEngine

/// An origin reached over the network by libcurl, in HTTP/1.1 and HTTP/2.
///
/// One thread of its own moves the bytes of all exchanges and keeps their connections; it ends
/// when the origin and every answer it gave are gone. Nothing is followed, decoded or retried,
/// and no field is sent that the request does not hold, beside `Host` and those of the framing.
public final class CurlOrigin: Origin {
    private let configuration: CurlConfiguration
    private let loop: Result<EventLoop, CacheError>

    /// An origin that connects as `configuration` says.
    public init(configuration: CurlConfiguration = CurlConfiguration()) {
        self.configuration = configuration
        loop = Result { () throws(CacheError) in try EventLoop.start(configuration) }
    }

    deinit {
        if case .success(let loop) = loop { loop.post(.retire) }
    }

    /// Sends the request, and returns when the head of its answer is there.
    public func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try Task.checkCancellation()
        let prepared = try PreparedRequest(request, isProxied: configuration.proxy != nil)
        let exchange = Exchange(
            loop: try loop.get(),
            windowBytesMax: configuration.limits.windowBytesMax
        )
        exchange.start(prepared)
        while true {
            switch await exchange.nextEvent() {
            case .informational(let head): request.onInformational?(head.status, head.fields)
            case .head(let head):
                return OriginResponse(
                    status: head.status,
                    fields: head.fields,
                    body: head.hasContent
                        ? BodyStream(exchange, count: head.contentBytes) : .empty
                )
            case .failure(let error): throw error
            case .chunk, .end:
                exchange.cancel()
                throw CacheError(.originMisbehaved, detail: "A body came before its head")
            }
        }
    }
}
