/// The scheme of a request's URL.
enum RequestScheme: String, CaseIterable, Hashable, Sendable {
    case http
    case https

    /// The bytes in front of the authority.
    var prefix: StaticString {
        switch self {
        case .http: "http://"
        case .https: "https://"
        }
    }

    /// The default port (RFC 9110 §4.2).
    var port: StaticString {
        switch self {
        case .http: "80"
        case .https: "443"
        }
    }
}
