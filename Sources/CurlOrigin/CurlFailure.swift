internal import CCurl
internal import CacheEngine

/// What libcurl's codes mean to a cache.
enum CurlFailure {
    /// The error for an exchange that ended with `code`; `hasHead`: in the middle of the body.
    static func error(_ code: CURLcode, text: String, hasHead: Bool) -> CacheError {
        let named = text.isEmpty ? String(cString: curl_easy_strerror(code)) : text
        return CacheError(self.code(code, text: text, hasHead: hasHead), detail: named)
    }

    static func error(_ kind: TransferDeadlines.Kind) -> CacheError {
        switch kind {
        case .head: CacheError(.originTimedOut, detail: "No answer within its deadline")
        case .idle: CacheError(.originTimedOut, detail: "The body stopped arriving")
        case .total: CacheError(.originTimedOut, detail: "The exchange took too long")
        }
    }

    private static func code(_ code: CURLcode, text: String, hasHead: Bool) -> CacheError.Code {
        switch code {
        case CURLE_OPERATION_TIMEDOUT: return .originTimedOut
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_BAD_CONTENT_ENCODING,
            CURLE_TOO_LARGE_HEAD:
            return .originMisbehaved
        case CURLE_URL_MALFORMAT: return .requestInvalid
        // Broken chunks and a broken connection have the same code; only the text differs.
        case CURLE_RECV_ERROR where text.contains("chunked-encoding"): return .originMisbehaved
        default: return hasHead ? .bodyTruncated : .originFailed
        }
    }

    /// CURLE_TOO_LARGE of later versions than the oldest supported one.
    private static let CURLE_TOO_LARGE_HEAD = CURLcode(rawValue: 100)
}
