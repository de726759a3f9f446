import CacheEngine
import CacheTestSupport

/// One answer the origin (or a store by hand) gave: what its body is, and what may be done with it.
struct Content: Sendable {
    /// Counts every answer of one simulation.
    let serial: Int
    let path: Path
    /// The `Accept-Language` it was made for, where the path varies.
    let language: String
    /// The `X-Caller` of the request it was made for.
    let caller: String
    /// The moment at which it was asked for.
    let askedAt: Int
    var bytes: [UInt8]
    /// Whether it may be given to anybody but the caller who asked.
    var isShareable = true
    /// Whether it may be stored; what broke off or lied may not.
    var isStorable = true
    /// Whether a reader may come to a clean end of it.
    var mayEnd = true

    /// The body of a serial: long enough that a wrong slice shows.
    static func body(_ serial: Int, _ path: Path, _ language: String, count: Int) -> [UInt8] {
        let text = Array("\(path.rawValue) \(serial) \(language) ".utf8)
        return (0..<count).map { text[$0 % text.count] ^ UInt8(truncatingIfNeeded: $0 / 97) }
    }
}

/// The resources of a simulated site.
enum Path: String, CaseIterable, Sendable {
    case plain = "/plain"
    case brief = "/brief"
    case windowed = "/windowed"
    case varying = "/varying"
    case confirmed = "/confirmed"
    case personal = "/personal"
    case large = "/large"

    var url: String { "http://example.com\(rawValue)" }

    var fields: HeaderFields {
        var fields: HeaderFields = ["Cache-Tag": "site", "ETag": "\"\(rawValue)\""]
        switch self {
        case .plain, .large: fields["Cache-Control"] = "max-age=60"
        case .brief: fields["Cache-Control"] = "max-age=2"
        case .windowed:
            fields["Cache-Control"] = "max-age=2, stale-while-revalidate=30, stale-if-error=60"
        case .varying:
            fields["Cache-Control"] = "max-age=60"
            fields["Vary"] = "Accept-Language"
        case .confirmed: fields["Cache-Control"] = "no-cache"
        case .personal: fields["Cache-Control"] = "private, max-age=60"
        }
        return fields
    }

    var bodyBytes: Int { self == .large ? 200_000 : 600 }
}
