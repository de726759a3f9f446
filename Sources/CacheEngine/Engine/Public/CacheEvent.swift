/// An event in a cache, with the request if it belongs to one.
///
/// A later version may add cases: a `switch` over events needs a `default`.
public enum CacheEvent: Sendable {
    /// A caller received the head of its response.
    case answered(Answer)
    /// A response to the request was not stored.
    case refused(StoreRefusalReason, request: CacheRequest)
    /// A request to the origin failed: the origin could not be reached, was too slow, violated HTTP
    /// or broke off its response.
    case originFailed(any Error, request: CacheRequest)
    /// A request was sent to the origin alone, for the given reason.
    case escaped(String, request: CacheRequest)
    /// A background refresh ended.
    case refreshed(succeeded: Bool, request: CacheRequest)
    /// The `willStore` hook threw or took too long.
    case hookFailed(any Error, request: CacheRequest)
    /// A store operation failed, or a cache directory was found damaged.
    ///
    /// Failures of a disk are reported once, and then at most once a minute.
    case storageFailed(any Error)
    /// The log of the fleet cannot be read or written; reported once until it can be.
    case fleetFailed(any Error)
    /// The log of the fleet is read again, or for the first time.
    case fleetLinked
}

extension CacheEvent {
    /// A response that a caller received.
    public struct Answer: Sendable {
        /// The caller's request.
        public let request: CacheRequest
        /// The status code.
        public let status: Int
        /// The source of the response.
        public let source: CacheInfo.Source
        /// The length of the body in bytes; `nil` if it is known at the body's end only.
        public let bodyCount: Int?
        /// The time from the request to the head of its response; zero for a response that needed
        /// no waiting.
        public let duration: Duration

        init(
            _ request: CacheRequest,
            status: Int,
            _ source: CacheInfo.Source,
            bodyCount: Int?,
            nanoseconds: UInt64 = 0
        ) {
            self.request = request
            self.status = status
            self.source = source
            self.bodyCount = bodyCount
            duration = .nanoseconds(Int64(clamping: nanoseconds))
        }

        init(_ request: CacheRequest, _ response: CacheResponse, nanoseconds: UInt64 = 0) {
            self.init(
                request,
                status: response.status,
                response.info.source,
                bodyCount: response.body.count,
                nanoseconds: nanoseconds
            )
        }
    }
}
