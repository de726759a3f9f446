/// What the Cache-Control directives of a response say, all lines taken together (RFC 9111 §5.2.2).
///
/// Unknown directives are skipped. Of a directive given twice the more restrictive reading counts:
/// the smaller number, the argument-less form. A lifetime that is no number is 0, so the response is
/// stale (RFC 9111 §4.2.1).
package struct ResponseDirectives: Hashable, Sendable {
    package struct Flags: OptionSet, Hashable, Sendable {
        package let rawValue: UInt16
        package init(rawValue: UInt16) { self.rawValue = rawValue }

        package static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache` without field names.
        package static let noCache = Flags(rawValue: 1 << 1)
        /// `no-cache="field, ..."`.
        package static let noCacheFields = Flags(rawValue: 1 << 2)
        /// `private` without field names.
        package static let `private` = Flags(rawValue: 1 << 3)
        /// `private="field, ..."`.
        package static let privateFields = Flags(rawValue: 1 << 4)
        package static let `public` = Flags(rawValue: 1 << 5)
        package static let mustRevalidate = Flags(rawValue: 1 << 6)
        package static let proxyRevalidate = Flags(rawValue: 1 << 7)
        package static let mustUnderstand = Flags(rawValue: 1 << 8)
        package static let noTransform = Flags(rawValue: 1 << 9)
        package static let immutable = Flags(rawValue: 1 << 10)
        /// A quoted string never closes: whatever lifetime the field gives cannot be trusted.
        package static let unclosedQuote = Flags(rawValue: 1 << 11)
    }

    package var flags: Flags = []
    package var maxAgeSeconds: UInt32?
    package var sharedMaxAgeSeconds: UInt32?
    package var staleWhileRevalidateSeconds: UInt32?
    package var staleIfErrorSeconds: UInt32?

    package init() {}

    /// Adds one Cache-Control line.
    package mutating func add(_ line: ByteRun) {
        var scanner = DirectiveScanner(line)
        while let directive = scanner.next() { add(directive) }
        if scanner.hasUnclosedQuote { flags.insert(.unclosedQuote) }
    }

    private mutating func add(_ directive: DirectiveScanner.Directive) {
        let name = directive.name
        let argument = directive.argument
        switch name.count {
        case 6:
            if name.equals(lowercased: "public") { flags.insert(.public) }
        case 7:
            if name.equals(lowercased: "max-age") { Self.lower(&maxAgeSeconds, to: argument) }
            if name.equals(lowercased: "private") {
                flags.insert(argument.namesFields ? .privateFields : .private)
            }
        case 8:
            if name.equals(lowercased: "no-store") { flags.insert(.noStore) }
            if name.equals(lowercased: "s-maxage") {
                Self.lower(&sharedMaxAgeSeconds, to: argument)
            }
            if name.equals(lowercased: "no-cache") {
                flags.insert(argument.namesFields ? .noCacheFields : .noCache)
            }
        case 9:
            if name.equals(lowercased: "immutable") { flags.insert(.immutable) }
        case 12:
            if name.equals(lowercased: "no-transform") { flags.insert(.noTransform) }
        case 14:
            if name.equals(lowercased: "stale-if-error") {
                Self.lower(&staleIfErrorSeconds, to: argument)
            }
        case 15:
            if name.equals(lowercased: "must-revalidate") { flags.insert(.mustRevalidate) }
            if name.equals(lowercased: "must-understand") { flags.insert(.mustUnderstand) }
        case 16:
            if name.equals(lowercased: "proxy-revalidate") { flags.insert(.proxyRevalidate) }
        case 22:
            if name.equals(lowercased: "stale-while-revalidate") {
                Self.lower(&staleWhileRevalidateSeconds, to: argument)
            }
        default: break
        }
    }

    private static func lower(_ seconds: inout UInt32?, to argument: DirectiveScanner.Argument) {
        let value = argument.seconds ?? 0
        seconds = min(seconds ?? value, value)
    }
}

extension DirectiveScanner.Argument {
    /// The argument as delta-seconds, quoted or not (RFC 9111 §5.2).
    package var seconds: UInt32? {
        switch self {
        case .token(let text), .quoted(let text): DeltaSeconds.parse(text)
        case .none, .malformed: nil
        }
    }

    /// Whether the argument is a list of at least one field name and of nothing else.
    package var namesFields: Bool {
        guard let list = fieldList else { return false }
        var members = ListScanner(list)
        var hasMember = false
        while let member = members.next() {
            guard FieldSection.isValidName(member) else { return false }
            hasMember = true
        }
        return hasMember
    }

    package var fieldList: ByteRun? {
        switch self {
        case .token(let text), .quoted(let text): text
        case .none, .malformed: nil
        }
    }
}
