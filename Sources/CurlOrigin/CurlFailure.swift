internal import CCurl
package import CacheEngine
import Platform

/// Maps libcurl's error codes and missed deadlines to `CacheError`.
package enum CurlFailure {
    /// The progress of the exchange.
    enum Progress {
        /// No connection was made, and no byte was sent.
        case unsent
        case sent
        /// The body is arriving.
        case arriving
    }

    /// Returns the error for an exchange that ended with `code`.
    ///
    /// libcurl's `text` is shown and decides nothing. `isConnectionSound` says that no system call
    /// failed on the connection, so that the bytes were at fault.
    static func error(
        _ code: CURLcode,
        text: String,
        _ progress: Progress,
        isConnectionSound: Bool
    ) -> CacheError {
        // The text may quote the origin.
        let named = PlainText.excerpt(
            text.isEmpty ? String(cString: curl_easy_strerror(code)) : text,
            scalarsMax: Int(CURL_ERROR_SIZE)
        )
        return CacheError(
            self.code(code, progress, isConnectionSound: isConnectionSound),
            detail: "libcurl: \(named)"
        )
    }

    /// Returns the error for an exchange that ended with `code` because this machine lacks something;
    /// `nil` if it ended for another reason.
    ///
    /// `systemCode` is that of the last system call that failed, or 0. libcurl has none for a socket
    /// that it cannot open, nor for a look-up: `openSocket` then tells whether one can be opened now.
    static func lack(
        _ code: CURLcode,
        _ progress: Progress,
        systemCode: Int32,
        openSocket: () -> Int32 = Self.openSocket
    ) -> LocalLack? {
        let found: Int32
        switch code {
        case CURLE_COULDNT_CONNECT where systemCode != 0: found = systemCode
        case CURLE_COULDNT_CONNECT, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY:
            found = openSocket()
        default: return nil
        }
        let lacks = [EMFILE, ENFILE, ENOBUFS, ENOMEM, EADDRNOTAVAIL]
        guard progress == .unsent, lacks.contains(found) else { return nil }
        return .ofSocket(code: found)
    }

    /// Opens a socket and closes it; returns the error number, or 0.
    private static func openSocket() -> Int32 {
        let socket = openStreamSocket(AF_INET)
        guard socket >= 0 else { return errno }
        close(socket)
        return 0
    }

    /// Returns the error for a missed deadline.
    ///
    /// `isSourceSilent` says whether the source of the content has stopped delivering bytes.
    package static func error(
        _ kind: TransferDeadlines.Kind,
        isSourceSilent: Bool
    ) -> CacheError {
        switch kind {
        case .unsent:
            CacheError(.deadlineExceeded, detail: "The request was not sent within its deadline")
        case .upload where isSourceSilent:
            CacheError(
                .deadlineExceeded,
                detail: "The request's content stopped arriving: no byte within deadlines.idle"
            )
        case .upload:
            CacheError(
                .originTimedOut,
                detail: "The origin accepted no byte of the content within deadlines.idle"
            )
        case .head:
            CacheError(.originTimedOut, detail: "The origin sent no response within its deadline")
        case .idle:
            CacheError(.originTimedOut, detail: "The body stopped: no byte within deadlines.idle")
        case .total:
            CacheError(.originTimedOut, detail: "The exchange took longer than deadlines.total")
        }
    }

    private static func code(
        _ code: CURLcode,
        _ progress: Progress,
        isConnectionSound: Bool
    ) -> CacheError.Code {
        switch code {
        case CURLE_COULDNT_RESOLVE_PROXY, CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_CONNECT,
            CURLE_SSL_CONNECT_ERROR, CURLE_PEER_FAILED_VERIFICATION, CURLE_OPERATION_TIMEDOUT:
            if progress == .unsent { return .originUnreachable }
            return code == CURLE_OPERATION_TIMEDOUT ? .originTimedOut : .originFailed
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING,
            CURLE_TOO_LARGE_HEAD:
            return .originMisbehaved
        case CURLE_URL_MALFORMAT: return .requestInvalid
        // libcurl has one code for malformed chunks and for a broken connection.
        case CURLE_RECV_ERROR where progress == .arriving && isConnectionSound:
            return .originMisbehaved
        default: return progress == .arriving ? .bodyTruncated : .originFailed
        }
    }

    /// CURLE_TOO_LARGE, which the oldest supported version does not define.
    private static let CURLE_TOO_LARGE_HEAD = CURLcode(rawValue: 100)
}
