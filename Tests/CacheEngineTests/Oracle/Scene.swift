import CacheEngine

/// The state of the cache when the request arrives.
enum Scene: String, CaseIterable, Sendable {
    case absent, fresh, stale
    /// The first bytes of the first version.
    case partial
    /// A variant that the request does not select.
    case variant
    /// A 404.
    case negative

    /// The time since the response was stored.
    var ageSeconds: Double { self == .stale ? 100 : 10 }
    var varies: Bool { self == .variant }
    /// The origin's conduct while the response is stored.
    var conduct: OracleOrigin.Conduct { self == .negative ? .missing : .same }

    /// The request whose response is stored.
    func preparation(_ url: String) -> CacheRequest? {
        switch self {
        case .absent: nil
        case .fresh, .stale, .negative: CacheRequest(url: url)
        case .partial: CacheRequest(url: url, fields: ["Range": "bytes=0-7"])
        case .variant: CacheRequest(url: url, fields: ["Accept-Language": "de"])
        }
    }

    /// The fields of every later request.
    var fields: HeaderFields { varies ? ["Accept-Language": "en"] : [:] }
}

/// One property of a request beyond a plain GET.
struct Wish: Hashable, Sendable, CustomStringConvertible {
    let name: String
    let value: String
    /// Two wishes of one dimension exclude each other.
    let dimension: String
    /// Whether the wish resembles another one and is left out of the pairs.
    let isMinor: Bool

    private init(_ name: String, _ value: String, dimension: String? = nil, isMinor: Bool = false) {
        self.name = name
        self.value = value
        self.dimension = dimension ?? name
        self.isMinor = isMinor
    }

    var description: String { "\(name): \(value)" }

    func apply(to request: inout CacheRequest) {
        if name == "method" {
            request.method = HTTPMethod(value)
            if request.method == .put { request.body = BodyStream(ByteChunk("put")) }
        } else {
            request.fields.append(name, value)
        }
    }

    static let all: [Wish] = {
        let tags = ["\"a\"", "\"b\""]
        let dates = [1, 2].map { Moment.text(Moment.modified(version: $0)) }
        let early = Moment.text(Moment.early)
        var all: [Wish] = []
        func add(_ name: String, _ values: [String], minor: [String] = []) {
            all += values.map { Wish(name, $0) } + minor.map { Wish(name, $0, isMinor: true) }
        }
        add("If-Match", tags, minor: ["*"])
        add("If-None-Match", tags, minor: ["*"])
        add("If-Modified-Since", dates, minor: [early])
        add("If-Unmodified-Since", [dates[0], early], minor: [dates[1]])
        add("If-Range", tags, minor: [dates[0]])
        add("Range", ["bytes=0-3", "bytes=2-9", "bytes=-4", "bytes=90-"])
        add("method", ["HEAD", "PUT"])
        add("Cookie", ["id=1"])
        add("Authorization", ["Basic cDpx"])
        for directive in ["no-cache", "no-store", "only-if-cached", "max-age=0", "max-stale=20"] {
            all.append(Self.directive(directive))
        }
        for directive in ["max-age=30", "min-fresh=55", "max-stale"] {
            all.append(Self.directive(directive, isMinor: true))
        }
        return all
    }()

    private static func directive(_ text: String, isMinor: Bool = false) -> Wish {
        let name = text.split(separator: "=")[0]
        return Wish("Cache-Control", text, dimension: String(name), isMinor: isMinor)
    }

    /// No wish, each wish alone, and each pair.
    static let singlesAndPairs: [[Wish]] = {
        var sets = singles
        let major = all.filter { !$0.isMinor }
        for (index, first) in major.enumerated() {
            for second in major[(index + 1)...] where first.dimension != second.dimension {
                sets.append([first, second])
            }
        }
        return sets
    }()

    static let singles: [[Wish]] = [[]] + all.map { [$0] }
}
