import CacheEngine
import CacheTestSupport

/// One answer of the origin, or of a store by hand, and the rules for its use.
struct Content: Sendable {
    /// The number of the answer within the simulation.
    let serial: Int
    let path: Path
    /// The `Accept-Language` of the request, for a path that varies.
    let language: String
    /// The `X-Caller` of the request.
    let caller: String
    /// The moment of the request.
    let askedAt: Int
    /// The moment of the last request that the origin answered with this content or confirmed it
    /// for.
    var asOf: Int
    /// The moment at which the cache had taken the head of that answer.
    var arrivedAt: Int
    /// The moment at which the last piece of its body, so far, was taken.
    var endedAt: Int
    var bytes: [UInt8]
    /// Whether callers other than the one that sent the request may receive it.
    var isShareable = true
    /// Whether it may be stored; a body that broke off or had a wrong length must not be.
    var isStorable = true
    /// Whether the application stored it, and no origin sent it.
    var isByHand = false
    /// Whether only its head was sent.
    var isBodiless = false
    /// Whether a reader may reach a clean end of the body.
    var mayEnd = true
    /// Whether its body goes on for ever, with `endlessByte`.
    var isEndless = false

    static let endlessByte: UInt8 = 7

    var tag: String { "\"\(path.rawValue)-\(serial)\"" }

    /// The bytes of a part; `nil` if the body has no such part.
    func part(_ range: Range<Int>) -> [UInt8]? {
        if range.upperBound <= bytes.count { return Array(bytes[range]) }
        guard isEndless else { return nil }
        let known = range.clamped(to: 0..<bytes.count)
        return bytes[known]
            + [UInt8](repeating: Self.endlessByte, count: range.count - known.count)
    }

    /// The body of a serial, long enough that a wrong slice is noticed.
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

    /// The lifetime of an answer; it is 0 if each use must be confirmed.
    var lifetimeSeconds: Int64 {
        switch self {
        case .plain, .varying, .personal, .large: 60
        case .brief, .windowed: 2
        case .confirmed: 0
        }
    }

    /// The fields of an answer with the given entity tag.
    func fields(tag: String) -> HeaderFields {
        var fields: HeaderFields = ["Cache-Tag": "site", "ETag": tag]
        switch self {
        case .plain, .brief, .large: fields["Cache-Control"] = "max-age=\(lifetimeSeconds)"
        case .windowed:
            fields["Cache-Control"] =
                "max-age=\(lifetimeSeconds), stale-while-revalidate=30, stale-if-error=60"
        case .varying:
            fields["Cache-Control"] = "max-age=\(lifetimeSeconds)"
            fields["Vary"] = "Accept-Language"
        case .confirmed: fields["Cache-Control"] = "no-cache"
        case .personal: fields["Cache-Control"] = "private, max-age=\(lifetimeSeconds)"
        }
        return fields
    }

    var bodyBytes: Int { self == .large ? 200_000 : 600 }
}
