import CacheEngine
import HTTPCaching

/// The responses that the proxy generates itself (RFC 9110 §15.6).
enum GatewayError {
    /// The value of `Allow` for the methods that the proxy passes on by name.
    private static let methods = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"

    /// The response to OPTIONS that may not be passed on (RFC 9110 §7.6.2).
    static func options() -> CacheResponse {
        CacheResponse(
            status: 200,
            fields: HeaderFields([("Allow", methods), ("Cache-Control", "no-store")]),
            body: .empty,
            info: CacheInfo(source: .generated)
        )
    }

    static func response(for fault: RequestFault, name: String) -> CacheResponse {
        response(status: fault.status, detail: fault.rawValue, name: name)
    }

    /// The response to a request that failed; an error without a code counts as the origin's.
    static func response(for error: any Error, name: String) -> CacheResponse {
        let code =
            (error as? CacheError)?.code
            ?? (error is CancellationError ? .shutDown : CacheError.Code.originFailed)
        return response(status: status(code), detail: code.description, name: name)
    }

    static func status(_ code: CacheError.Code) -> Int {
        switch code {
        case .originTimedOut, .deadlineExceeded, .notCached: 504
        case .requestInvalid: 400
        case .shutDown: 503
        case .loadRecursed: 508
        default: 502
        }
    }

    /// `detail` is one of the proxy's own codes, never a text from outside.
    private static func response(status: Int, detail: String, name: String) -> CacheResponse {
        let phrase = "\(StatusPhrase.text(status))"
        // RFC 9209 §2 writes the name as RFC 9211 does.
        let name = CacheStatus.identifierText(name)
        var fields = HeaderFields([
            ("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store"),
            ("Proxy-Status", "\(name); detail=\"\(detail)\""),
        ])
        if status == 405 { fields.append("Allow", methods) }
        return CacheResponse(
            status: status,
            fields: fields,
            body: BodyStream(ByteChunk("\(status) \(phrase)\n")),
            info: CacheInfo(source: .generated)
        )
    }
}
