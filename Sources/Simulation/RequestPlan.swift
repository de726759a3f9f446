import CacheEngine

/// The plan of one request in a simulation.
struct RequestPlan: Sendable, CustomStringConvertible {
    let name: String
    let path: Path
    let language: String
    var request: CacheRequest
    var policy: CachePolicy?
    /// The turns of the executor before the caller leaves, or `nil` if it stays.
    var leavesAfter: Int?
    /// The bytes that the caller reads before it drops the body.
    var bytesMax = Int.max
    /// The turns of the executor between two reads.
    var pauseTurns = 0
    var startedAt = 0
    /// Whether it comes after the last fault, so that it must get a response.
    var isLast = false

    var isHead: Bool { request.method == .head }
    var isCancelled: Bool { leavesAfter != nil }
    /// Whether it may demand a response that comes after it.
    var mayReload: Bool {
        if let policy, !Self.reusing.contains(policy) { return true }
        return request.fields["Cache-Control"].map { $0 != "only-if-cached" } ?? false
    }

    private init(_ name: String, _ path: Path, language: String) {
        self.name = name
        self.path = path
        self.language = language
        request = CacheRequest(
            url: path.url,
            fields: ["Accept-Language": language, "X-Caller": name]
        )
    }

    /// The plan of a plain request after the last fault.
    init(last path: Path) {
        self.init("last caller of \(path.rawValue)", path, language: "de")
        isLast = true
    }

    init(_ number: Int, _ dice: Dice) {
        let path = dice.pick(Path.allCases)
        self.init("caller \(number)", path, language: dice.pick(["de", "en", "fr"]))
        if dice.oneIn(8) { request.method = .head }
        if dice.oneIn(6) { request.fields["Range"] = dice.pick(Self.ranges) }
        if dice.oneIn(10) {
            request.fields["If-None-Match"] = "\"\(path.rawValue)-\(dice.below(9))\""
        }
        if dice.oneIn(12) { request.fields["Cache-Control"] = dice.pick(Self.directives) }
        if dice.oneIn(12) { request.options.collapsing = .alone }
        if dice.oneIn(10) { request.options.timeout = .seconds(Double(1 + dice.below(20))) }
        if dice.oneIn(10) { policy = dice.pick(Self.policies) }
        if dice.oneIn(4) { leavesAfter = dice.below(30) }
        if dice.oneIn(5) { bytesMax = dice.below(2_000) }
        if dice.oneIn(4) { pauseTurns = dice.below(12) }
    }

    private static let ranges = ["bytes=0-9", "bytes=100-299", "bytes=-50", "bytes=0-0,5-9"]
    private static let directives = ["no-cache", "no-store", "max-age=0", "only-if-cached"]
    private static let policies: [CachePolicy] = [
        .reload, .cacheElseLoad, .cacheOnly,
        .revalidate, .cachedThenRefresh, .bypass,
    ]
    /// The policies that accept a stored response of any age.
    private static let reusing: [CachePolicy] = [.cacheElseLoad, .cacheOnly]

    var description: String {
        var text = "\(name) \(request.method) \(path.rawValue) at \(startedAt)"
        for name in ["Range", "If-None-Match", "Cache-Control", "Accept-Language"] {
            if let value = request.fields[name] { text += " \(name): \(value)" }
        }
        return text
    }
}

/// The answer that a caller received.
struct Answer: Sendable, CustomStringConvertible {
    var status: Int?
    var serial: Int?
    var source: CacheInfo.Source?
    var range: Range<Int>?
    var isMultipart = false
    /// Whether the cache reported that the answer is stored.
    var isStored = false
    var bytes: [UInt8] = []
    /// Whether the body was read to a clean end.
    var isWhole = false
    var error: (any Error)?

    var isFromStore: Bool {
        switch source {
        case .fresh, .stale, .revalidated, .fallback: true
        default: false
        }
    }

    /// Whether it is a whole response, and none that replaces a failed one.
    var isWholeResponse: Bool {
        error == nil && status == 200 && isWhole && source != .fallback
    }

    /// Whether later requests must receive this answer while it is fresh.
    var isTold: Bool {
        switch source {
        case .fresh, .revalidated: true
        // A body that broke off after the head is not stored; a partial response may not be.
        case .origin, .collapsed: isStored && isWhole && status == 200
        case .stale, .fallback, .generated, nil: false
        }
    }

    mutating func take(_ response: CacheResponse) {
        status = response.status
        source = response.info.source
        isStored = response.info.isStored
        serial = response.fields["X-Serial"].flatMap { Int($0) }
        isMultipart = response.fields["Content-Type"]?.hasPrefix("multipart/") ?? false
        guard let text = response.fields["Content-Range"], text.hasPrefix("bytes ") else { return }
        let numbers = text.dropFirst(6).split(whereSeparator: { $0 == "-" || $0 == "/" })
        guard numbers.count == 3, let low = Int(numbers[0]), let high = Int(numbers[1]),
            low <= high
        else { return }
        range = low..<high + 1
    }

    var description: String {
        "status \(status ?? 0), serial \(serial ?? -1), \(source?.rawValue ?? "none"), "
            + "\(bytes.count) bytes, \(isWhole ? "whole" : "not whole"), error \(error as Any)"
    }
}
