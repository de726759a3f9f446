internal import CacheEngine

/// An absolute http or https URL, cut into what selects the connection and what is asked for.
///
/// The bytes of the path and query are not touched: what a cache asks for must be what its key
/// says, dot segments and odd escapes included.
struct RequestTarget: Hashable {
    enum Scheme: String { case http, https }

    let scheme: Scheme
    /// Host and port; user information is left out (RFC 9110 §4.2.4).
    let authority: String
    /// The path and query in origin-form (RFC 9112 §3.2.1), or `*` for the server as a whole.
    let originForm: String

    /// What the request line names when a proxy is asked (RFC 9112 §3.2.2).
    var absoluteForm: String {
        "\(scheme.rawValue)://\(authority)\(originForm == "*" ? "" : originForm)"
    }
    /// A URL that names the connection and nothing else.
    var connectionURL: String { "\(scheme.rawValue)://\(authority)/" }

    /// OPTIONS of a URL without a path is about the server as a whole (RFC 9112 §3.2.4).
    init(_ url: String, method: Method = .get) throws(CacheError) {
        var rest = Substring(url)
        guard let schemeEnd = rest.firstRange(of: "://"),
            let scheme = Scheme(rawValue: rest[..<schemeEnd.lowerBound].lowercased())
        else { throw Self.invalid("No http or https URL") }
        rest = rest[schemeEnd.upperBound...].prefix { $0 != "#" }
        guard url.utf8.count <= Self.bytesMax else { throw Self.invalid("The URL is too long") }
        guard rest.utf8.allSatisfy({ $0 > 0x20 && $0 != 0x7F }) else {
            throw Self.invalid("The URL contains a space or a control character")
        }
        let authorityEnd = rest.firstIndex { $0 == "/" || $0 == "?" || $0 == "\\" } ?? rest.endIndex
        var authority = rest[..<authorityEnd]
        if let at = authority.lastIndex(of: "@") {
            authority = authority[authority.index(after: at)...]
        }
        guard !authority.isEmpty, authority.first != ":" else {
            throw Self.invalid("The URL has no host")
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

    /// Longer than any server accepts.
    static let bytesMax = 1 << 20

    private static func invalid(_ detail: String) -> CacheError {
        CacheError(.requestInvalid, detail: detail)
    }
}
