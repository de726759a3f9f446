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
        if isLack(code) { return noSocket(code: code) }
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
            return NoSocket(
                shown: CacheError(
                    .originFailed,
                    detail: "Cannot look up \(host): \(String(cString: strerror(lack)))"
                )
            )
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
        // A name server that cannot be asked for want of a socket seems to fail for a while.
        guard code == EAI_SYSTEM || code == EAI_AGAIN else { return nil }
        return [EMFILE, ENFILE, ENOBUFS, ENOMEM].contains(systemCode) ? systemCode : nil
    }

    /// libcurl's way to an origin has the same error.
    typealias NoSocket = LocalLack

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
