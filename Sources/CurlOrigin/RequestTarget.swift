internal import CacheEngine
internal import HTTPCaching

/// An absolute http or https URL, split into the connection and the request target.
///
/// The bytes of the path and query are not changed: the request must name the same resource as the
/// cache key, including dot segments and unusual escapes.
struct RequestTarget: Hashable {
    let isSecure: Bool
    /// Host and port, without user information (RFC 9110 §4.2.4).
    let authority: String
    /// The path and query in origin-form (RFC 9112 §3.2.1), or `*` for the whole server.
    let originForm: String

    /// The request target in absolute-form, for a proxy (RFC 9112 §3.2.2).
    var absoluteForm: String {
        "\(scheme)://\(authority)\(originForm == "*" ? "" : originForm)"
    }
    /// A URL that names only the connection.
    var connectionURL: String { "\(scheme)://\(authority)/" }

    private var scheme: String { isSecure ? "https" : "http" }

    /// Splits `url`; OPTIONS of a URL without a path concerns the whole server (RFC 9112 §3.2.4).
    init(_ url: String, method: HTTPMethod = .get) throws(CacheError) {
        let split = url.withByteRun { text in
            OriginURL.split(text).map { parts in
                let authority = String(decoding: text[parts.authority].buffer, as: UTF8.self)
                return (parts, authority, Self.originForm(text[parts.target], method))
            }
        }
        switch split {
        case .success(let (parts, authority, originForm)):
            isSecure = parts.isSecure
            self.authority = authority
            self.originForm = originForm
        case .failure(let fault): throw fault.error(url)
        }
    }

    private static func originForm(_ target: ByteRun, _ method: HTTPMethod) -> String {
        if target.isEmpty { return method == .options ? "*" : "/" }
        let text = String(decoding: target.buffer, as: UTF8.self)
        return target[0] == .slash ? text : "/" + text
    }
}
