/// What the cache's owner, or the one request, wishes about reuse.
package struct ReusePreferences: Hashable, Sendable {
    package enum Freshness: Hashable, Sendable {
        case respect
        /// Serve what is stored, however old.
        case acceptAnyAge(StaleLimit)
        case alwaysValidate
    }

    package enum StaleLimit: UInt8, Hashable, Sendable {
        /// Not when the origin said `must-revalidate` or `no-cache`.
        case honourMustRevalidate
        case ignoreMustRevalidate
    }

    package enum RequestDirectives: UInt8, Hashable, Sendable {
        case honour
        /// A client cannot make this cache ask the origin.
        case ignore
    }

    package var freshness: Freshness = .respect
    package var requestDirectives: RequestDirectives = .honour
    /// Applies where the response has no stale-while-revalidate of its own.
    package var staleWhileRevalidateSeconds: UInt32 = 0
    /// How stale a response may be served when the origin answers with an error (RFC 5861 §4 lists
    /// which) and the response has no stale-if-error of its own.
    package var staleOnErrorSeconds: UInt32 = 0
    /// The same when the origin cannot be reached at all (RFC 9111 §4.2.4, "disconnected").
    package var staleOnDisconnectSeconds: UInt32 = 86_400

    package init() {}

    package static let standard = ReusePreferences()
}
