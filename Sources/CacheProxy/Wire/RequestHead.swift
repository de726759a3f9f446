package import HTTPCaching

/// The head of a request as ranges of the parsed bytes; nothing is copied.
///
/// The ranges are valid only for those bytes, and only until they move.
package struct RequestHead: Sendable {
    /// The name and value of a field line.
    package struct FieldPlace: Hashable, Sendable {
        package var name: Range<Int>
        package var value: Range<Int>
    }

    /// How the content after the head is delimited (RFC 9112 §6).
    package enum Framing: Hashable, Sendable {
        case none
        case length(Int)
        case chunked
    }

    /// Facts of the head about itself and its connection.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let isOldVersion = Self(rawValue: 1 << 0)
        package static let wantsClose = Self(rawValue: 1 << 1)
        package static let wantsKeepAlive = Self(rawValue: 1 << 2)
        package static let expectsContinue = Self(rawValue: 1 << 3)
        /// Connection lists fields other than `close` and `keep-alive`.
        package static let listsFields = Self(rawValue: 1 << 4)
        /// A field belongs to the connection and must not be forwarded.
        package static let hasConnectionFields = Self(rawValue: 1 << 5)
        package static let hasVia = Self(rawValue: 1 << 6)
        package static let hasContentLength = Self(rawValue: 1 << 7)
        package static let hasTransferEncoding = Self(rawValue: 1 << 8)
        package static let expectsElse = Self(rawValue: 1 << 9)
    }

    package internal(set) var method = 0..<0
    package internal(set) var methodKind = MethodKind.other
    package internal(set) var target = 0..<0
    /// The value of the Host field.
    package internal(set) var host: Range<Int>?
    package internal(set) var framing = Framing.none
    package internal(set) var flags: Flags = []
    package internal(set) var fields: [FieldPlace] = []

    package init() {}

    /// Whether another request may follow on the connection (RFC 9112 §9.3).
    package var mayPersist: Bool {
        if flags.contains(.wantsClose) { return false }
        return !flags.contains(.isOldVersion) || flags.contains(.wantsKeepAlive)
    }

    package var hasContent: Bool {
        switch framing {
        case .none, .length(0): false
        case .length, .chunked: true
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
        fields.removeAll(keepingCapacity: true)
    }
}
