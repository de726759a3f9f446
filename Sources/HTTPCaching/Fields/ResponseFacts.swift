/// The facts of a response head that the rules use, read in one pass and without allocating.
public struct ResponseFacts: Hashable, Sendable {
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        public static let variesOnEverything = Flags(rawValue: 1 << 0)
        public static let hasStrongEntityTag = Flags(rawValue: 1 << 1)
        public static let hasWeakEntityTag = Flags(rawValue: 1 << 2)
        public static let hasSetCookie = Flags(rawValue: 1 << 3)
        /// The response has an Expires field, valid or not.
        public static let hasExpires = Flags(rawValue: 1 << 4)
        public static let hasTransferEncoding = Flags(rawValue: 1 << 5)
        /// See `ContentLength.isInvalid`.
        public static let hasInvalidContentLength = Flags(rawValue: 1 << 6)
        public static let hasCacheControl = Flags(rawValue: 1 << 7)
        public static let hasPragmaNoCache = Flags(rawValue: 1 << 8)
        /// A targeted field replaces Cache-Control and Expires (RFC 9213).
        public static let isTargeted = Flags(rawValue: 1 << 9)
        /// The response has an Age field, valid or not.
        public static let hasAge = Flags(rawValue: 1 << 10)
    }

    public var status: Int
    public var directives = ResponseDirectives()
    public var flags: Flags = []
    /// Unix seconds; `nil` if the field is missing or invalid.
    public var dateSeconds: Int64?
    /// Unix seconds, the earliest of several; `nil` if the field is missing or a value is invalid.
    ///
    /// See `Flags.hasExpires`.
    public var expiresSeconds: Int64?
    public var lastModifiedSeconds: Int64?
    /// `nil` if the field is missing or invalid; see `Flags.hasAge`.
    public var ageSeconds: UInt32?
    public var contentLength: Int?
    public var contentRange: ContentRange?
    /// The number of members of Vary, repeated ones included.
    public var varyMemberCount = 0

    /// Reads the facts from `fields`.
    ///
    /// `targets` names the targeted fields to obey, the most specific first. `receivedAtSeconds`
    /// resolves two-digit years.
    public init(
        status: Int,
        fields: FieldSection,
        targets: [String],
        receivedAtSeconds: Int64
    ) {
        self.status = status
        var pass = Pass(near: receivedAtSeconds)
        fields.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() { pass.read(line, into: &self) }
        }
        if pass.hasInvalidExpires { expiresSeconds = nil }
        contentLength = pass.length.count
        if pass.length.isInvalid { flags.insert(.hasInvalidContentLength) }
        if targets.contains(where: { pass.names.mayInclude($0) }),
            let targeted = ResponseDirectives.targeted(by: targets, in: fields)
        {
            directives = targeted
            flags.insert(.isTargeted)
        }
    }

    public init(status: Int, fields: FieldSection, rules: StoringRules, receivedAtSeconds: Int64) {
        self.init(
            status: status,
            fields: fields,
            targets: rules.targetedFields,
            receivedAtSeconds: receivedAtSeconds
        )
    }

    /// Whether the response has a strong validator (RFC 9110 §8.8.2.2).
    ///
    /// That is a strong entity tag, or a Last-Modified at least one second older than the Date of
    /// the same response.
    public var hasStrongValidator: Bool {
        flags.contains(.hasStrongEntityTag) || hasStrongLastModified
    }

    public var hasStrongLastModified: Bool {
        guard let lastModifiedSeconds, let dateSeconds else { return false }
        return lastModifiedSeconds < dateSeconds
    }

    public var hasAnyValidator: Bool {
        lastModifiedSeconds != nil || flags.contains(.hasStrongEntityTag)
            || flags.contains(.hasWeakEntityTag)
    }

    /// The reader's state between lines.
    private struct Pass {
        let near: Int64
        var names = NameSketch()
        var length = ContentLength()
        var hasInvalidExpires = false
        var hasDate = false
        var hasLastModified = false
        var hasEntityTag = false

        init(near: Int64) { self.near = near }

        mutating func read(_ line: FieldCursor.Line, into facts: inout ResponseFacts) {
            let name = line.name
            names.insert(name)
            switch name.count {
            case 3 where name.equals(lowercased: "age"): readAge(line.value, &facts)
            case 4 where name.equals(lowercased: "date"): readDate(line.value, &facts)
            case 4 where name.equals(lowercased: "etag"): readEntityTag(line.value, &facts)
            case 4 where name.equals(lowercased: "vary"): Self.readVary(line.value, &facts)
            case 6 where name.equals(lowercased: "pragma"): Self.readPragma(line.value, &facts)
            case 7 where name.equals(lowercased: "expires"): readExpires(line.value, &facts)
            case 10 where name.equals(lowercased: "set-cookie"): facts.flags.insert(.hasSetCookie)
            case 13 where name.equals(lowercased: "cache-control"):
                facts.flags.insert(.hasCacheControl)
                facts.directives.add(line.value)
            case 13 where name.equals(lowercased: "last-modified"):
                readLastModified(line.value, &facts)
            case 13 where name.equals(lowercased: "content-range"):
                facts.contentRange = ContentRange(line.value)
            case 14 where name.equals(lowercased: "content-length"): length.add(line.value)
            case 17 where name.equals(lowercased: "transfer-encoding"):
                facts.flags.insert(.hasTransferEncoding)
            default: break
            }
        }

        /// RFC 9111 §5.1: the first member of the first line counts; an invalid one is ignored.
        private mutating func readAge(_ value: ByteRun, _ facts: inout ResponseFacts) {
            guard !facts.flags.contains(.hasAge) else { return }
            facts.flags.insert(.hasAge)
            var members = ListScanner(value)
            facts.ageSeconds = members.next().flatMap { DeltaSeconds.parse($0) }
        }

        private mutating func readDate(_ value: ByteRun, _ facts: inout ResponseFacts) {
            guard !hasDate else { return }
            hasDate = true
            facts.dateSeconds = HTTPDate.parse(value, nearSeconds: near)
        }

        private mutating func readEntityTag(_ value: ByteRun, _ facts: inout ResponseFacts) {
            guard !hasEntityTag else { return }
            hasEntityTag = true
            guard let tag = EntityTag(value) else { return }
            facts.flags.insert(tag.isStrong ? .hasStrongEntityTag : .hasWeakEntityTag)
        }

        private mutating func readLastModified(_ value: ByteRun, _ facts: inout ResponseFacts) {
            guard !hasLastModified else { return }
            hasLastModified = true
            facts.lastModifiedSeconds = HTTPDate.parse(value, nearSeconds: near)
        }

        /// RFC 9111 §5.3: an invalid date lies in the past and invalidates the other Expires lines.
        private mutating func readExpires(_ value: ByteRun, _ facts: inout ResponseFacts) {
            facts.flags.insert(.hasExpires)
            guard let seconds = HTTPDate.parse(value, nearSeconds: near) else {
                hasInvalidExpires = true
                return
            }
            facts.expiresSeconds = min(facts.expiresSeconds ?? seconds, seconds)
        }

        private static func readVary(_ value: ByteRun, _ facts: inout ResponseFacts) {
            var members = ListScanner(value)
            while let member = members.next() {
                facts.varyMemberCount += 1
                // A member that is not a field name cannot be compared, so it never matches.
                if member.equals(exactly: "*") || !FieldSection.isValidName(member) {
                    facts.flags.insert(.variesOnEverything)
                }
            }
        }

        private static func readPragma(_ value: ByteRun, _ facts: inout ResponseFacts) {
            var scanner = DirectiveScanner(value)
            while let directive = scanner.next() {
                if directive.name.equals(lowercased: "no-cache") {
                    facts.flags.insert(.hasPragmaNoCache)
                }
            }
        }
    }
}
