internal import CacheEngine

/// An absolute http or https URL, split into the connection and the request target.
///
/// The bytes of the path and query are not changed: the request must name the same resource as the
/// cache key, including dot segments and unusual escapes.
struct RequestTarget: Hashable {
    enum Scheme: String { case http, https }

    let scheme: Scheme
    /// Host and port, without user information (RFC 9110 §4.2.4).
    let authority: String
    /// The path and query in origin-form (RFC 9112 §3.2.1), or `*` for the whole server.
    let originForm: String

    /// The request target in absolute-form, for a proxy (RFC 9112 §3.2.2).
    var absoluteForm: String {
        "\(scheme.rawValue)://\(authority)\(originForm == "*" ? "" : originForm)"
    }
    /// A URL that names only the connection.
    var connectionURL: String { "\(scheme.rawValue)://\(authority)/" }

    /// Splits `url`; OPTIONS of a URL without a path concerns the whole server (RFC 9112 §3.2.4).
    init(_ url: String, method: HTTPMethod = .get) throws(CacheError) {
        var rest = Substring(url)
        guard let schemeEnd = rest.firstRange(of: "://"),
            let scheme = Scheme(rawValue: rest[..<schemeEnd.lowerBound].lowercased())
        else {
            throw Self.invalid("The URL is not an http or https URL: `\(PlainText.excerpt(url))`")
        }
        rest = rest[schemeEnd.upperBound...].prefix { $0 != "#" }
        guard url.utf8.count <= Self.bytesMax else {
            throw Self.invalid("The URL has \(url.utf8.count) bytes, more than \(Self.bytesMax)")
        }
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Self.invalid(
                "The URL contains a space or a control character; escape it: "
                    + "`\(PlainText.excerpt(url))`"
            )
        }
        let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "\\" } ?? rest.endIndex
        var authority = rest[..<authorityEnd]
        if let at = authority.lastIndex(of: "@") {
            authority = authority[authority.index(after: at)...]
        }
        guard !authority.isEmpty, authority.first != ":" else {
            throw Self.invalid("The URL has no host: `\(PlainText.excerpt(url))`")
        }
        let target = rest[authorityEnd...]
        self.scheme = scheme
        self.authority = String(authority)
        if target.isEmpty, method == .options {
            originForm = "*"
        } else {
            originForm = target.first == "/" ? String(target) : "/" + target
        }
    }

    /// The maximum length of a URL, longer than any server accepts.
    static let bytesMax = 1 << 20

    private static func invalid(_ detail: String) -> CacheError {
        CacheError(.requestInvalid, detail: detail)
    }
}
