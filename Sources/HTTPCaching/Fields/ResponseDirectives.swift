/// The Cache-Control directives of a response, from all its lines (RFC 9111 §5.2.2).
///
/// Unknown directives are skipped. If a directive occurs twice, the more restrictive one counts:
/// the smaller number, or the form without an argument. An invalid lifetime counts as 0, so the
/// response is stale (RFC 9111 §4.2.1).
public struct ResponseDirectives: Hashable, Sendable {
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        public static let noStore = Flags(rawValue: 1 << 0)
        /// `no-cache` without field names.
        public static let noCache = Flags(rawValue: 1 << 1)
        /// `no-cache="field, ..."`.
        public static let noCacheFields = Flags(rawValue: 1 << 2)
        /// `private` without field names.
        public static let `private` = Flags(rawValue: 1 << 3)
        /// `private="field, ..."`.
        public static let privateFields = Flags(rawValue: 1 << 4)
        public static let `public` = Flags(rawValue: 1 << 5)
        public static let mustRevalidate = Flags(rawValue: 1 << 6)
        public static let proxyRevalidate = Flags(rawValue: 1 << 7)
        public static let mustUnderstand = Flags(rawValue: 1 << 8)
        public static let noTransform = Flags(rawValue: 1 << 9)
        public static let immutable = Flags(rawValue: 1 << 10)
        /// A quoted string never closes: no lifetime of the field can be trusted.
        public static let unclosedQuote = Flags(rawValue: 1 << 11)
        /// `no-cache` or `private` names Set-Cookie among its fields.
        public static let namesSetCookie = Flags(rawValue: 1 << 12)
    }

    public var flags: Flags = []
    public var maxAgeSeconds: UInt32?
    public var sharedMaxAgeSeconds: UInt32?
    public var staleWhileRevalidateSeconds: UInt32?
    public var staleIfErrorSeconds: UInt32?

    public init() {}

    /// Adds one Cache-Control line.
    public mutating func add(_ line: ByteRun) {
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
                addListing(argument, whole: .private, fields: .privateFields)
            }
        case 8:
            if name.equals(lowercased: "no-store") { flags.insert(.noStore) }
            if name.equals(lowercased: "s-maxage") {
                Self.lower(&sharedMaxAgeSeconds, to: argument)
            }
            if name.equals(lowercased: "no-cache") {
                addListing(argument, whole: .noCache, fields: .noCacheFields)
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

    private mutating func addListing(
        _ argument: DirectiveScanner.Argument,
        whole: Flags,
        fields: Flags
    ) {
        guard argument.namesFields else {
            flags.insert(whole)
            return
        }
        flags.insert(fields)
        if argument.names("set-cookie") { flags.insert(.namesSetCookie) }
    }

    private static func lower(_ seconds: inout UInt32?, to argument: DirectiveScanner.Argument) {
        let value = argument.seconds ?? 0
        seconds = min(seconds ?? value, value)
    }
}

extension DirectiveScanner.Argument {
    /// The argument as delta-seconds, quoted or not (RFC 9111 §5.2).
    public var seconds: UInt32? {
        switch self {
        case .token(let text), .quoted(let text): DeltaSeconds.parse(text)
        case .none, .malformed: nil
        }
    }

    /// Whether the argument is a list of field names with at least one member.
    public var namesFields: Bool {
        guard let list = fieldList else { return false }
        var members = ListScanner(list)
        var hasMember = false
        while let member = members.next() {
            guard FieldSection.isValidName(member) else { return false }
            hasMember = true
        }
        return hasMember
    }

    /// Whether `lowercased` is a member of the list.
    func names(_ lowercased: StaticString) -> Bool {
        guard let list = fieldList else { return false }
        var members = ListScanner(list)
        while let member = members.next() {
            if member.equals(lowercased: lowercased) { return true }
        }
        return false
    }

    public var fieldList: ByteRun? {
        switch self {
        case .token(let text), .quoted(let text): text
        case .none, .malformed: nil
        }
    }
}
