/// The facts of a request that the rules use, read in one pass and without allocating.
public struct RequestFacts: Hashable, Sendable {
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt16
        public init(rawValue: UInt16) { self.rawValue = rawValue }

        public static let noCache = Flags(rawValue: 1 << 0)
        public static let noStore = Flags(rawValue: 1 << 1)
        public static let onlyIfCached = Flags(rawValue: 1 << 2)
        /// `max-stale` without a number: accepts any staleness.
        public static let maxStaleAny = Flags(rawValue: 1 << 3)
        public static let hasAuthorization = Flags(rawValue: 1 << 4)
        public static let hasCookie = Flags(rawValue: 1 << 5)
        public static let hasRange = Flags(rawValue: 1 << 6)
        public static let hasIfMatch = Flags(rawValue: 1 << 7)
        public static let hasIfNoneMatch = Flags(rawValue: 1 << 8)
        public static let hasIfModifiedSince = Flags(rawValue: 1 << 9)
        public static let hasIfUnmodifiedSince = Flags(rawValue: 1 << 10)
        public static let hasIfRange = Flags(rawValue: 1 << 11)

        /// If-Match and If-Unmodified-Since, which only origins evaluate.
        public static let writeConditions: Flags = [.hasIfMatch, .hasIfUnmodifiedSince]
        /// If-None-Match and If-Modified-Since, which a cache may evaluate.
        public static let readConditions: Flags = [.hasIfNoneMatch, .hasIfModifiedSince]
        public static let conditionals: Flags = [
            .hasIfMatch, .hasIfNoneMatch, .hasIfModifiedSince, .hasIfUnmodifiedSince, .hasIfRange,
        ]
    }

    public var method: MethodKind
    public var flags: Flags = []
    public var maxAgeSeconds: UInt32?
    public var maxStaleSeconds: UInt32?
    public var minFreshSeconds: UInt32?
    public var staleIfErrorSeconds: UInt32?

    public init(method: MethodKind) { self.method = method }

    public init(method: MethodKind, fields: FieldSection) {
        self.method = method
        var hasCacheControl = false
        var hasPragmaNoCache = false
        fields.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() {
                switch Self.kind(line.name) {
                case .flag(let flag): flags.insert(flag)
                case .cacheControl:
                    hasCacheControl = true
                    addDirectives(line.value)
                case .pragma:
                    hasPragmaNoCache = hasPragmaNoCache || Self.namesNoCache(line.value)
                case .other: break
                }
            }
        }
        // RFC 9111 §5.4: Pragma counts only if Cache-Control is absent.
        if hasPragmaNoCache, !hasCacheControl { flags.insert(.noCache) }
    }

    /// The condition of a GET on a stored response that is whole and fresh.
    public enum HitCondition {
        /// The response answers the request.
        case none
        /// The response, or a 304: `If-None-Match` decides, also beside `If-Modified-Since`, which
        /// it overrides (RFC 9110 §13.1.3).
        case ifNoneMatch
        /// Directives, a range or other conditions: the rules decide.
        case other
    }

    /// The condition of a GET with these fields.
    ///
    /// `Cookie` and `Authorization` are no condition: they decide what is stored, not what is
    /// reused (RFC 9111 §3.5).
    public static func hitCondition(of fields: FieldSection) -> HitCondition {
        fields.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            var conditions: Flags = []
            while let line = cursor.next() {
                guard mayCondition(line.name) else { continue }
                switch kind(line.name) {
                case .flag(let flag): conditions.insert(flag)
                case .cacheControl, .pragma: return .other
                case .other: break
                }
            }
            if conditions.isEmpty { return .none }
            guard conditions.contains(.hasIfNoneMatch), conditions.isSubset(of: .readConditions)
            else { return .other }
            return .ifNoneMatch
        }
    }

    /// The facts of a cache that does not read the directives of its clients.
    public var withoutDirectives: RequestFacts {
        var facts = RequestFacts(method: method)
        facts.flags = flags.subtracting([.noCache, .noStore, .onlyIfCached, .maxStaleAny])
        return facts
    }

    public var isConditional: Bool { !flags.isDisjoint(with: .conditionals) }
    public var onlyIfCached: Bool { flags.contains(.onlyIfCached) }
    public var hasRange: Bool { flags.contains(.hasRange) }
    public var hasAuthorization: Bool { flags.contains(.hasAuthorization) }

    private enum FieldKind {
        case flag(Flags)
        case cacheControl, pragma, other
    }

    /// Whether the field may be a condition of a hit; length and first letter exclude most names.
    private static func mayCondition(_ name: ByteRun) -> Bool {
        func letter(_ letter: Unicode.Scalar) -> UInt32 { 1 << (letter.value & 31) }
        let firstLetters: UInt32
        switch name.count {
        case 5: firstLetters = letter("r")
        case 6: firstLetters = letter("p")
        case 8, 17, 19: firstLetters = letter("i")
        case 13: firstLetters = letter("c") | letter("i")
        default: return false
        }
        return firstLetters >> UInt32(name[0] & 31) & 1 != 0
    }

    private static func kind(_ name: ByteRun) -> FieldKind {
        switch name.count {
        case 5: return name.equals(lowercased: "range") ? .flag(.hasRange) : .other
        case 6:
            if name.equals(lowercased: "cookie") { return .flag(.hasCookie) }
            return name.equals(lowercased: "pragma") ? .pragma : .other
        case 8:
            if name.equals(lowercased: "if-match") { return .flag(.hasIfMatch) }
            return name.equals(lowercased: "if-range") ? .flag(.hasIfRange) : .other
        case 13:
            if name.equals(lowercased: "cache-control") { return .cacheControl }
            if name.equals(lowercased: "authorization") { return .flag(.hasAuthorization) }
            return name.equals(lowercased: "if-none-match") ? .flag(.hasIfNoneMatch) : .other
        case 17:
            return name.equals(lowercased: "if-modified-since")
                ? .flag(.hasIfModifiedSince) : .other
        case 19:
            return name.equals(lowercased: "if-unmodified-since")
                ? .flag(.hasIfUnmodifiedSince) : .other
        default: return .other
        }
    }

    private static func namesNoCache(_ value: ByteRun) -> Bool {
        var scanner = DirectiveScanner(value)
        while let directive = scanner.next() {
            if directive.name.equals(lowercased: "no-cache") { return true }
        }
        return false
    }

    /// Adds the directives of one line (RFC 9111 §5.2.1).
    ///
    /// An invalid `max-age` counts as 0. An invalid number in a directive that relaxes the rules is
    /// ignored, and so is an `only-if-cached` that is doubtful: the origin is asked.
    private mutating func addDirectives(_ line: ByteRun) {
        var scanner = DirectiveScanner(line)
        while let directive = scanner.next() {
            let name = directive.name
            let seconds = directive.argument.seconds
            switch name.count {
            case 7 where name.equals(lowercased: "max-age"):
                maxAgeSeconds = min(maxAgeSeconds ?? .max, seconds ?? 0)
            case 8 where name.equals(lowercased: "no-cache"): flags.insert(.noCache)
            case 8 where name.equals(lowercased: "no-store"): flags.insert(.noStore)
            case 9 where name.equals(lowercased: "max-stale"):
                if case .none = directive.argument { flags.insert(.maxStaleAny) }
                if let seconds { maxStaleSeconds = min(maxStaleSeconds ?? .max, seconds) }
            case 9 where name.equals(lowercased: "min-fresh"):
                if let seconds { minFreshSeconds = max(minFreshSeconds ?? 0, seconds) }
            case 14 where name.equals(lowercased: "only-if-cached"):
                if !directive.isDoubtful { flags.insert(.onlyIfCached) }
            case 14 where name.equals(lowercased: "stale-if-error"):
                if let seconds { staleIfErrorSeconds = min(staleIfErrorSeconds ?? .max, seconds) }
            default: break
            }
        }
    }
}
