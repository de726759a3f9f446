import CacheEngine
import Platform

/// The errors of exchanges with origins, as the cache and its users see them.
enum UpstreamFailure {
    static let shutDown = CacheError(
        .originFailed,
        detail: "The event loop of the origin has ended"
    )
    static let closedUnanswered = CacheError(
        .originFailed,
        detail: "The origin closed the connection before its response"
    )
    static let closedInHead = CacheError(
        .originFailed,
        detail: "The origin closed the connection within the head of its response"
    )
    static let truncated = CacheError(
        .bodyTruncated,
        detail: "The origin closed the connection before the end of the body"
    )
    static let connectTimedOut = CacheError(
        .originUnreachable,
        detail: "The origin accepted no connection within the connect limit"
    )

    static func unreachable(_ host: String, code: Int32) -> CacheError {
        CacheError(
            .originUnreachable,
            detail: "Cannot connect to \(host): \(String(cString: strerror(code)))"
        )
    }

    static func unresolved(_ host: String, code: Int32) -> CacheError {
        CacheError(
            .originUnreachable,
            detail: "Cannot find the address of \(host): \(String(cString: gai_strerror(code)))"
        )
    }

    /// No socket could be opened: a fault of this machine, which counts against no origin.
    ///
    /// The cache sees the code `originFailed`, as for every error of an origin that has no code.
    struct NoSocket: Error, CustomStringConvertible {
        let shown: CacheError
        var description: String { shown.detail }
    }

    static func noSocket(code: Int32) -> NoSocket {
        NoSocket(
            shown: CacheError(
                .originFailed,
                detail: "Cannot open a socket to the origin: \(String(cString: strerror(code)))"
            )
        )
    }

    static func misbehaved(_ fault: ResponseFault) -> CacheError {
        CacheError(.originMisbehaved, detail: fault.text)
    }
}
