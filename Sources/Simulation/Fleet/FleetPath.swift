import CacheEngine

/// The resources of a site that a simulated fleet serves.
enum FleetPath: String, CaseIterable, Sendable {
    case plain = "/plain"
    case untagged = "/untagged"
    case brief = "/brief"
    case windowed = "/windowed"
    case varying = "/varying"
    case personal = "/personal"

    static let languages = ["de", "en"]

    var url: String { "http://example.com\(rawValue)" }

    var tags: [String] {
        switch self {
        case .untagged: []
        case .plain, .windowed: ["site", "news"]
        default: ["site", "t\(rawValue.dropFirst())"]
        }
    }

    /// The languages that have a response each.
    var variants: [String] { self == .varying ? Self.languages : [Self.languages[0]] }

    var maxAgeSeconds: Int {
        switch self {
        case .brief, .windowed: 3
        default: 600
        }
    }

    /// The fields of a response; `moment` is that of the request that it answers.
    func fields(tag: String, serial: Int, moment: Int) -> HeaderFields {
        var fields: HeaderFields = [
            "ETag": tag, "X-Serial": String(serial), "X-As-Of": String(moment),
        ]
        if !tags.isEmpty { fields["Cache-Tag"] = tags.joined(separator: ", ") }
        switch self {
        case .windowed:
            fields["Cache-Control"] =
                "max-age=3, stale-while-revalidate=30, stale-if-error=60"
        case .personal: fields["Cache-Control"] = "private, max-age=600"
        default: fields["Cache-Control"] = "max-age=\(maxAgeSeconds)"
        }
        if self == .varying { fields["Vary"] = "Accept-Language" }
        return fields
    }

    /// The bytes of a response, long enough that a wrong piece is noticed.
    func body(_ serial: Int, _ language: String) -> [UInt8] {
        let text = Array("\(rawValue) \(serial) \(language) ".utf8)
        return (0..<300 + serial % 700).map {
            text[$0 % text.count] ^ UInt8(truncatingIfNeeded: $0 / 97)
        }
    }
}
