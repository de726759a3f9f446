import CacheEngine
import CurlOrigin
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

    /// A look-up failed with `code` of the resolver, and `systemCode` of the system.
    static func unresolved(_ host: String, code: Int32, systemCode: Int32 = 0) -> any Error {
        if let lack = lack(code, systemCode), !Mutant.blamesNamesForLacks.isOn {
            return LocalLack.ofLookUp(host, code: lack)
        }
        let reason =
            code == EAI_SYSTEM && systemCode != 0
            ? String(cString: strerror(systemCode)) : String(cString: gai_strerror(code))
        return CacheError(
            .originUnreachable,
            detail: "Cannot find the address of \(host): \(reason)"
        )
    }

    /// The error number of what this machine lacks; `nil` if the look-up failed for another reason.
    private static func lack(_ code: Int32, _ systemCode: Int32) -> Int32? {
        if code == EAI_MEMORY { return ENOMEM }
        // The resolver says "try again" if it got no socket to ask a name server.
        guard code == EAI_SYSTEM || code == EAI_AGAIN else { return nil }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(systemCode) ? systemCode : nil
    }

    static func misbehaved(_ fault: ResponseFault) -> CacheError {
        CacheError(.originMisbehaved, detail: fault.text)
    }
}
