package import HTTPCaching

/// The head of a request as places in the bytes it was parsed from; nothing is copied.
///
/// It means something only beside those bytes, and only until they move.
package struct RequestHead: Sendable {
    /// A field line's name and value.
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

    /// What the head says about itself and its connection.
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let isOldVersion = Self(rawValue: 1 << 0)
        package static let wantsClose = Self(rawValue: 1 << 1)
        package static let wantsKeepAlive = Self(rawValue: 1 << 2)
        package static let expectsContinue = Self(rawValue: 1 << 3)
        /// Connection names fields beyond the usual ones.
        package static let listsFields = Self(rawValue: 1 << 4)
        /// Some field belongs to the connection and must not go further.
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

    /// Whether the connection may carry another request behind this one (RFC 9112 §9.3).
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

    /// Forgets everything but the room for fields.
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
