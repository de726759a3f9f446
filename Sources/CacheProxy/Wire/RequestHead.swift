import HTTPCaching

/// The head of a request as ranges of the parsed bytes; nothing is copied.
///
/// The ranges are valid only for those bytes, and only until they move.
struct RequestHead: Sendable {
    /// The name and value of a field line.
    struct FieldPlace: Hashable, Sendable {
        var name: Range<Int>
        var value: Range<Int>
    }

    /// Facts of the head about itself and its connection.
    struct Flags: OptionSet, Hashable, Sendable {
        let rawValue: UInt16
        init(rawValue: UInt16) { self.rawValue = rawValue }

        static let isOldVersion = Self(rawValue: 1 << 0)
        static let wantsClose = Self(rawValue: 1 << 1)
        static let wantsKeepAlive = Self(rawValue: 1 << 2)
        static let expectsContinue = Self(rawValue: 1 << 3)
        /// Connection lists fields other than `close` and `keep-alive`.
        static let listsFields = Self(rawValue: 1 << 4)
        /// A field belongs to the connection and must not be forwarded.
        static let hasConnectionFields = Self(rawValue: 1 << 5)
        static let hasVia = Self(rawValue: 1 << 6)
        static let hasContentLength = Self(rawValue: 1 << 7)
        static let hasTransferEncoding = Self(rawValue: 1 << 8)
        static let expectsElse = Self(rawValue: 1 << 9)
        /// A name has other signs than letters, digits and hyphens.
        static let hasOddNames = Self(rawValue: 1 << 10)
    }

    var method = 0..<0
    var methodKind = MethodKind.other
    var target = 0..<0
    /// The value of the Host field.
    var host: Range<Int>?
    var framing = BodyFraming.none
    var flags: Flags = []
    /// The members of Connection other than `close` and `keep-alive`.
    var listedCount = 0
    var fields: [FieldPlace] = []

    init() {}

    /// Whether another request may follow on the connection (RFC 9112 §9.3).
    var mayPersist: Bool {
        if flags.contains(.wantsClose) { return false }
        return !flags.contains(.isOldVersion) || flags.contains(.wantsKeepAlive)
    }

    var hasContent: Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked, .untilClose: true
        }
    }

    /// Resets every property and keeps the storage of the fields.
    mutating func reset() {
        method = 0..<0
        methodKind = .other
        target = 0..<0
        host = nil
        framing = .none
        flags = []
        listedCount = 0
        fields.removeAll(keepingCapacity: true)
    }
}
