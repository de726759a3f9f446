/// One member of a Cache-Status field (RFC 9211): how this cache handled the request.
package struct CacheStatus: Hashable, Sendable {
    /// The reason why the request was forwarded (RFC 9211 §2.2).
    package enum Forward: String, Hashable, Sendable, CaseIterable {
        case bypass
        case method
        case uriMiss = "uri-miss"
        case varyMiss = "vary-miss"
        case miss
        case request
        case stale
        case partial
    }

    package enum Outcome: Hashable, Sendable {
        case hit
        case forwarded(Forward)
    }

    package var identifier: String
    package var outcome: Outcome
    package var forwardStatus: Int?
    /// Seconds of freshness left, negative if stale.
    package var ttlSeconds: Int?
    package var isStored = false
    package var isCollapsed = false
    package var key: String?
    package var detail: String?

    package init(identifier: String, outcome: Outcome) {
        self.identifier = identifier
        self.outcome = outcome
    }

    /// The identifier in its serialised form.
    package var identifierText: String { Self.tokenOrString(identifier) }

    /// The member in its serialised form.
    package var text: String {
        var text = ""
        // Enough for most members, so that the buffer rarely grows: every response carries a
        // member.
        text.reserveCapacity(Self.usualBytes)
        text += identifierText
        switch outcome {
        case .hit: text += "; hit"
        case .forwarded(let reason):
            text += "; fwd="
            text += reason.rawValue
            if let forwardStatus { Self.append("; fwd-status=", forwardStatus, to: &text) }
            if isStored { text += "; stored" }
            if isCollapsed { text += "; collapsed" }
        }
        if let ttlSeconds { Self.append("; ttl=", ttlSeconds, to: &text) }
        if let key { text += "; key=\(Self.string(key))" }
        if let detail { text += "; detail=\(Self.tokenOrString(detail))" }
        return text
    }

    private static let usualBytes = 96

    private static func append(_ name: String, _ number: Int, to text: inout String) {
        text += name
        text += String(number)
    }

    /// A token (RFC 9651 §4.1.7) if `text` is one, otherwise a string (§4.1.6).
    private static func tokenOrString(_ text: String) -> String {
        text.withByteRun(isToken) ? text : string(text)
    }

    private static func isToken(_ text: ByteRun) -> Bool {
        guard !text.isEmpty, text[0].isLetter || text[0] == .asterisk else { return false }
        for index in 0..<text.count {
            let byte = text[index]
            guard byte.isToken || byte == .colon || byte == .slash else { return false }
        }
        return true
    }

    /// A quoted string; bytes that a structured string cannot hold become question marks.
    private static func string(_ text: String) -> String {
        var bytes: [UInt8] = [.quote]
        for byte in text.utf8 {
            if byte == .quote || byte == .backslash { bytes.append(.backslash) }
            bytes.append(byte >= 0x20 && byte <= 0x7E ? byte : .questionMark)
        }
        bytes.append(.quote)
        return String(decoding: bytes, as: UTF8.self)
    }
}
