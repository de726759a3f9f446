/// The Cache-Control directives of a response, from all its lines (RFC 9111 §5.2.2).
///
/// Unknown directives are skipped. If a directive occurs twice, the more restrictive one counts:
/// the smaller number, or the form without an argument. An invalid lifetime counts as 0, so the
/// response is stale (RFC 9111 §4.2.1). A doubtful directive (`DirectiveScanner`) restricts, and
/// permits nothing. See `docs/decisions/0010-directives-that-conflict.md`.
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
        /// A doubtful `must-revalidate`, which forbids stale use and permits nothing.
        public static let doubtfulMustRevalidate = Flags(rawValue: 1 << 13)
        /// A doubtful `must-understand`, which does not set `no-store` aside.
        public static let doubtfulMustUnderstand = Flags(rawValue: 1 << 14)
        /// A doubtful `s-maxage`, which is 0 and permits nothing.
        public static let doubtfulSharedMaxAge = Flags(rawValue: 1 << 15)
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
        guard scanner.hasUnclosedQuote else { return }
        flags.insert(.unclosedQuote)
        // The text after the quote could be part of the string, so no number of the field counts.
        staleWhileRevalidateSeconds = 0
        staleIfErrorSeconds = 0
    }

    private mutating func add(_ directive: DirectiveScanner.Directive) {
        let name = directive.name
        let argument = directive.argument
        switch name.count {
        case 6:
            if name.equals(lowercased: "public") { insert(.public, by: directive) }
        case 7:
            if name.equals(lowercased: "max-age") { Self.lower(&maxAgeSeconds, to: argument) }
            if name.equals(lowercased: "private") {
                addListing(argument, whole: .private, fields: .privateFields)
            }
        case 8:
            if name.equals(lowercased: "no-store") { flags.insert(.noStore) }
            if name.equals(lowercased: "s-maxage") {
                Self.lower(&sharedMaxAgeSeconds, to: argument)
                if directive.isDoubtful { flags.insert(.doubtfulSharedMaxAge) }
            }
            if name.equals(lowercased: "no-cache") {
                addListing(argument, whole: .noCache, fields: .noCacheFields)
            }
        case 9:
            if name.equals(lowercased: "immutable") { insert(.immutable, by: directive) }
        case 12:
            if name.equals(lowercased: "no-transform") { flags.insert(.noTransform) }
        case 14:
            if name.equals(lowercased: "stale-if-error") {
                Self.lower(&staleIfErrorSeconds, to: argument)
            }
        case 15:
            if name.equals(lowercased: "must-revalidate") {
                insert(.mustRevalidate, by: directive, inDoubt: .doubtfulMustRevalidate)
            }
            if name.equals(lowercased: "must-understand") {
                insert(.mustUnderstand, by: directive, inDoubt: .doubtfulMustUnderstand)
            }
        case 16:
            if name.equals(lowercased: "proxy-revalidate") { flags.insert(.proxyRevalidate) }
        case 22:
            if name.equals(lowercased: "stale-while-revalidate") {
                Self.lower(&staleWhileRevalidateSeconds, to: argument)
            }
        default: break
        }
    }

    /// Inserts the flag of a directive that permits something; `doubtful` if it is in doubt.
    private mutating func insert(
        _ flag: Flags,
        by directive: DirectiveScanner.Directive,
        inDoubt doubtful: Flags = []
    ) {
        flags.insert(directive.isDoubtful ? doubtful : flag)
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
