/// One member of a Cache-Status field (RFC 9211): how this cache handled the request.
public struct CacheStatus: Hashable, Sendable {
    /// The reason why the request was forwarded (RFC 9211 §2.2).
    public enum Forward: String, Hashable, Sendable, CaseIterable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    public enum Outcome: Hashable, Sendable {
        case hit
        case forwarded(Forward)
        /// The cache made the response, which is neither a hit nor forwarded.
        case generated(Reason)
    }

    /// The reason why the cache made a response of its own.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        case onlyIfCached = "only-if-cached"
    }

    public var outcome: Outcome
    public var forwardStatus: Int?
    /// Seconds of freshness left, negative if stale.
    public var ttlSeconds: Int?
    public var isStored = false
    public var isCollapsed = false
    public var key: String?
    public var detail: String?

    public init(_ outcome: Outcome) { self.outcome = outcome }

    /// The serialised form of the name of a cache or proxy: a token or a string.
    public static func identifierText(_ name: String) -> String {
        var bytes: [UInt8] = []
        append(tokenOrString: name, to: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }

    /// The member of the cache with this name in its serialised form.
    public func text(of name: String) -> String {
        Self.identifierText(name) + String(decoding: parameters, as: UTF8.self)
    }

    /// The bytes behind the name of the cache.
    public var parameters: [UInt8] {
        var bytes: [UInt8] = []
        // Enough for most members, so that the buffer rarely grows: every response carries a
        // member.
        bytes.reserveCapacity(Self.usualBytes)
        switch outcome {
        case .hit: Self.append("; hit", to: &bytes)
        case .forwarded(let reason):
            Self.append("; fwd=", to: &bytes)
            Self.append(text: reason.rawValue, to: &bytes)
            if let forwardStatus { Self.append("; fwd-status=", forwardStatus, to: &bytes) }
            if isStored { Self.append("; stored", to: &bytes) }
            if isCollapsed { Self.append("; collapsed", to: &bytes) }
        case .generated(let reason):
            Self.append("; detail=", to: &bytes)
            Self.append(text: reason.rawValue, to: &bytes)
        }
        if let ttlSeconds { Self.append("; ttl=", ttlSeconds, to: &bytes) }
        if let key {
            Self.append("; key=", to: &bytes)
            Self.append(string: key, to: &bytes)
        }
        if let detail {
            Self.append("; detail=", to: &bytes)
            Self.append(tokenOrString: detail, to: &bytes)
        }
        return bytes
    }

    private static let usualBytes = 96

    private static func append(_ literal: StaticString, to bytes: inout [UInt8]) {
        literal.withUTF8Buffer { bytes.append(contentsOf: $0) }
    }

    private static func append(text: String, to bytes: inout [UInt8]) {
        text.withByteRun { bytes.append(contentsOf: $0.buffer) }
    }

    private static func append(_ name: StaticString, _ number: Int, to bytes: inout [UInt8]) {
        append(name, to: &bytes)
        append(text: String(number), to: &bytes)
    }

    /// Appends a token (RFC 9651 §4.1.7) if `text` is one, otherwise a string (§4.1.6).
    private static func append(tokenOrString text: String, to bytes: inout [UInt8]) {
        if text.withByteRun(isToken) {
            append(text: text, to: &bytes)
        } else {
            append(string: text, to: &bytes)
        }
    }

    private static func isToken(_ text: ByteRun) -> Bool {
        guard !text.isEmpty, text[0].isLetter || text[0] == .asterisk else { return false }
        for index in 0..<text.count {
            let byte = text[index]
            guard byte.isToken || byte == .colon || byte == .slash else { return false }
        }
        return true
    }

    /// Appends a quoted string; bytes that a structured string cannot hold become question marks.
    private static func append(string text: String, to bytes: inout [UInt8]) {
        bytes.append(.quote)
        for byte in text.utf8 {
            if byte == .quote || byte == .backslash { bytes.append(.backslash) }
            bytes.append(byte >= 0x20 && byte <= 0x7E ? byte : .questionMark)
        }
        bytes.append(.quote)
    }
}
