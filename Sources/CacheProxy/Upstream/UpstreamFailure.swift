import CacheEngine
import CurlOrigin
import Platform

/// The errors of exchanges with origins, as the cache and its users see them.
enum UpstreamFailure {
    /// No failure of the origin: this process ends.
    static let shutDown = CacheError(
        Mutant.blamesOriginsForTheEnd.isOn ? .originFailed : .shutDown,
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

    /// No address of the host accepted a connection.
    static func unconnected(_ host: String, code: Int32) -> any Error {
        if isLack(code) { return LocalLack.ofSocket(code: code) }
        return CacheError(
            .originUnreachable,
            detail: "Cannot connect to \(host): \(String(cString: strerror(code)))"
        )
    }

    /// Whether a connection failed with `code` because this machine lacks a port or memory.
    static func isLack(_ code: Int32) -> Bool {
        [EADDRNOTAVAIL, EAGAIN, ENOBUFS, ENOMEM].contains(code)
    }

    /// The system has no address for the host.
    static func unresolved(_ host: String, _ failure: LookUpFailure) -> any Error {
        if let lack = failure.lack, !Mutant.blamesNamesForLacks.isOn {
            return LocalLack.ofLookUp(host, code: lack)
        }
        return CacheError(
            .originUnreachable,
            detail: "Cannot find the address of \(host): \(failure.reason)"
        )
    }

    static func misbehaved(_ fault: ResponseFault) -> CacheError {
        CacheError(.originMisbehaved, detail: fault.text)
    }
}
