import CacheEngine

/// A request as the origin and the oracle parse it: RFC 9110 §13 and §14, RFC 9111 §5.2.1.
struct Asked: Sendable {
    let method: HTTPMethod
    let ifMatch: [String]?
    let ifNoneMatch: [String]?
    let ifModifiedSince: Int64?
    let ifUnmodifiedSince: Int64?
    let ifRange: String?
    let range: ByteRange?
    let language: String?
    let isAuthorized: Bool
    let hasCookie: Bool
    private let directives: [String: Int]

    enum ByteRange: Hashable, Sendable {
        case from(Int, through: Int?)
        case last(Int)
    }

    init(_ method: HTTPMethod, _ fields: HeaderFields) {
        self.method = method
        ifMatch = Self.members(fields["If-Match"])
        ifNoneMatch = Self.members(fields["If-None-Match"])
        ifModifiedSince = fields["If-Modified-Since"].flatMap(Moment.parse)
        ifUnmodifiedSince = fields["If-Unmodified-Since"].flatMap(Moment.parse)
        ifRange = fields["If-Range"]
        range = fields["Range"].flatMap(Self.byteRange)
        language = fields["Accept-Language"]
        isAuthorized = fields.contains("Authorization")
        hasCookie = fields.contains("Cookie")
        var directives: [String: Int] = [:]
        for member in Self.members(fields["Cache-Control"]) ?? [] {
            let parts = member.split(separator: "=")
            directives[String(parts[0])] = parts.count > 1 ? Int(parts[1]) ?? 0 : .max
        }
        self.directives = directives
    }

    private static func members(_ text: String?) -> [String]? {
        text?.split(separator: ",").map { String($0.drop { $0 == " " }) }
    }

    private static func byteRange(_ text: String) -> ByteRange? {
        guard text.hasPrefix("bytes=") else { return nil }
        let ends = text.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
        guard ends.count == 2 else { return nil }
        if ends[0].isEmpty { return Int(ends[1]).map { .last($0) } }
        return Int(ends[0]).map { .from($0, through: Int(ends[1])) }
    }

    var noCache: Bool { directives["no-cache"] != nil }
    var noStore: Bool { directives["no-store"] != nil }
    var onlyIfCached: Bool { directives["only-if-cached"] != nil }
    var maxAge: Int? { directives["max-age"] }
    var minFresh: Int? { directives["min-fresh"] }
    /// The largest integer if `max-stale` has no value.
    var maxStale: Int? { directives["max-stale"] }

    var isRead: Bool { method == .get || method == .head }
    var hasWriteCondition: Bool { ifMatch != nil || ifUnmodifiedSince != nil }
    var hasReadCondition: Bool { ifNoneMatch != nil || ifModifiedSince != nil }
}

extension Asked {
    /// The result of evaluating the preconditions and the range.
    enum Outcome: Hashable, Sendable {
        case whole
        case part(Range<Int>)
        case notModified
        case preconditionFailed
        case unsatisfiable
    }

    /// Evaluates the steps of RFC 9110 §13.2.2 for a representation.
    ///
    /// `dateSeconds` is the `Date` of the response: a `Last-Modified` is strong only if it is
    /// earlier (RFC 9110 §8.8.2.2).
    func outcome(on current: Representation, dateSeconds: Int64) -> Outcome {
        if !passesWriteConditions(on: current) { return .preconditionFailed }
        if let ifNoneMatch {
            let isMatched = ifNoneMatch.contains { $0 == "*" || weakly($0, current.tag) }
            if isMatched { return isRead ? .notModified : .preconditionFailed }
        } else if isRead, let since = ifModifiedSince, let modified = current.modifiedSeconds,
            modified <= since
        {
            return .notModified
        }
        guard method == .get, let range else { return .whole }
        if let ifRange, !isUnchanged(ifRange, current, dateSeconds) { return .whole }
        return resolve(range, size: current.content.utf8.count)
    }

    /// Steps 1 and 2: `If-Match`, else `If-Unmodified-Since`.
    func passesWriteConditions(on current: Representation) -> Bool {
        if let ifMatch { return ifMatch.contains { $0 == "*" || strongly($0, current.tag) } }
        guard let since = ifUnmodifiedSince, let modified = current.modifiedSeconds else {
            return true
        }
        return modified <= since
    }

    private func isUnchanged(_ text: String, _ current: Representation, _ date: Int64) -> Bool {
        if let seconds = Moment.parse(text) {
            return seconds == current.modifiedSeconds && seconds < date
        }
        return strongly(text, current.tag)
    }

    private func resolve(_ range: ByteRange, size: Int) -> Outcome {
        switch range {
        case .from(let first, let last):
            guard first < size else { return .unsatisfiable }
            return .part(first..<min(size, (last ?? size - 1) + 1))
        case .last(let count):
            guard count > 0 else { return .unsatisfiable }
            return .part(max(0, size - count)..<size)
        }
    }

    private func strongly(_ wanted: String, _ tag: String?) -> Bool {
        wanted == tag && !wanted.hasPrefix("W/")
    }

    private func weakly(_ wanted: String, _ tag: String?) -> Bool {
        guard let tag else { return false }
        func opaque(_ tag: String) -> Substring {
            tag.hasPrefix("W/") ? tag.dropFirst(2) : tag[...]
        }
        return opaque(wanted) == opaque(tag)
    }
}
