/// The preferences of the cache's owner, or of one request, for reuse.
public struct ReusePreferences: Hashable, Sendable {
    public enum Freshness: Hashable, Sendable {
        case respect
        /// Serve a stored response of any age.
        case acceptAnyAge(StaleLimit)
        case alwaysValidate
    }

    public enum StaleLimit: UInt8, Hashable, Sendable {
        /// Does not serve stale if the origin sent `must-revalidate` or `no-cache`.
        case honourMustRevalidate
        case ignoreMustRevalidate
    }

    public var freshness: Freshness = .respect
    /// Used if the response has no stale-while-revalidate of its own.
    public var staleWhileRevalidateSeconds: UInt32 = 0
    /// The maximum staleness of a response that is served when the origin answers with an error.
    ///
    /// Used if the response has no stale-if-error of its own. RFC 5861 §4 lists the errors.
    public var staleOnErrorSeconds: UInt32 = 0
    /// The maximum staleness when the origin gives no response (RFC 9111 §4.2.4, "disconnected").
    public var staleOnDisconnectSeconds: UInt32 = 86_400

    public init() {}
}
