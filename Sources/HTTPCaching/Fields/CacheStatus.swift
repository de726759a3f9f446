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
        var identifier = ""
        withText(bytesMax: Text.bytesMax(of: name)) {
            $0.append(tokenOrString: name)
        } read: {
            identifier = String(decoding: $0, as: UTF8.self)
        }
        return identifier
    }

    /// The member of the cache with this name in its serialised form.
    public func text(of name: String) -> String {
        var text = Self.identifierText(name)
        withParameters { text += String(decoding: $0, as: UTF8.self) }
        return text
    }

    /// Lends the bytes after the name of the cache, which lie on the stack: every response carries
    /// them.
    ///
    /// Not generic: another target would not call it specialised.
    public func withParameters(_ read: (UnsafeRawBufferPointer) -> Void) {
        var bytesMax = Self.usualBytesMax
        if let key { bytesMax += Text.bytesMax(of: key) }
        if let detail { bytesMax += Text.bytesMax(of: detail) }
        Self.withText(bytesMax: bytesMax, { write(to: &$0) }, read: read)
    }

    /// The bytes of all parameters, at most, without the texts of `key` and `detail`.
    private static let usualBytesMax = 128

    private func write(to text: inout Text) {
        switch outcome {
        case .hit: text.append("; hit")
        case .forwarded(let reason):
            text.append("; fwd=")
            text.append(bytesOf: reason.rawValue)
            if let forwardStatus { text.append("; fwd-status=", forwardStatus) }
            if isStored { text.append("; stored") }
            if isCollapsed { text.append("; collapsed") }
        case .generated(let reason):
            text.append("; detail=")
            text.append(bytesOf: reason.rawValue)
        }
        if let ttlSeconds { text.append("; ttl=", ttlSeconds) }
        if let key {
            text.append("; key=")
            text.append(string: key)
        }
        if let detail {
            text.append("; detail=")
            text.append(tokenOrString: detail)
        }
    }

    private static func withText(
        bytesMax: Int,
        _ write: (inout Text) -> Void,
        read: (UnsafeRawBufferPointer) -> Void
    ) {
        withUnsafeTemporaryAllocation(byteCount: bytesMax, alignment: 1) { target in
            var text = Text(target)
            write(&text)
            read(text.written)
        }
    }

    /// Text in memory that has room for it.
    private struct Text {
        private let target: UnsafeMutableRawBufferPointer
        private var count = 0

        init(_ target: UnsafeMutableRawBufferPointer) { self.target = target }

        /// The bytes that a token or a quoted string of `text` needs, at most.
        static func bytesMax(of text: String) -> Int { 2 * text.utf8.count + 2 }

        var written: UnsafeRawBufferPointer { UnsafeRawBufferPointer(rebasing: target[..<count]) }
        private var room: UnsafeMutableRawBufferPointer { .init(rebasing: target[count...]) }

        private mutating func append(_ byte: UInt8) {
            target[count] = byte
            count += 1
        }

        private mutating func append(_ bytes: ByteRun) {
            assert(bytes.count <= room.count, "the text has room")
            room.copyMemory(from: bytes.buffer)
            count += bytes.count
        }

        mutating func append(_ literal: StaticString) { append(ByteRun(literal)) }

        mutating func append(_ name: StaticString, _ number: Int) {
            append(name)
            count += DecimalText.write(number, into: room)
        }

        mutating func append(bytesOf text: String) { text.withByteRun { append($0) } }

        /// Appends a token (RFC 9651 §4.1.7) if `text` is one, otherwise a string (§4.1.6).
        mutating func append(tokenOrString text: String) {
            text.withByteRun { run in
                if Self.isToken(run) { append(run) } else { append(string: run) }
            }
        }

        mutating func append(string text: String) { text.withByteRun { append(string: $0) } }

        /// Appends a quoted string; bytes that a structured string cannot hold become question
        /// marks.
        private mutating func append(string text: ByteRun) {
            append(.quote)
            for byte in text.buffer {
                if byte == .quote || byte == .backslash { append(.backslash) }
                append(byte >= 0x20 && byte <= 0x7E ? byte : .questionMark)
            }
            append(.quote)
        }

        private static func isToken(_ text: ByteRun) -> Bool {
            guard !text.isEmpty, text[0].isLetter || text[0] == .asterisk else { return false }
            if text.everyWord(\.areLettersOrHyphens) { return true }
            for index in 0..<text.count {
                let byte = text[index]
                guard byte.isToken || byte == .colon || byte == .slash else { return false }
            }
            return true
        }
    }
}
