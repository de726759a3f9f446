/// The numbers that decide reuse.
///
/// They are the first bytes of an entry's metadata, so that a hit parses no field.
///
///     0  u8   version         16  u32  corrected initial age     32  i64  Date
///     1  u8   0               20  u32  freshness lifetime        40  i64  Last-Modified, or none
///     2  u16  status          24  u32  stale-while-revalidate    all little-endian, 48 bytes
///     4  u32  flags           28  u32  stale-if-error
///     8  i64  response time
///
/// Times are Unix seconds; `none` is `Int64.min`.
public struct StoredFacts: Hashable, Sendable {
    public struct Flags: OptionSet, Hashable, Sendable {
        public let rawValue: UInt32
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// Must be validated before each use.
        public static let noCache = Flags(rawValue: 1 << 0)
        /// Must not be served stale: `must-revalidate`, or its equivalents in a shared cache.
        public static let mustRevalidate = Flags(rawValue: 1 << 1)
        public static let immutable = Flags(rawValue: 1 << 2)
        public static let hasStrongValidator = Flags(rawValue: 1 << 4)
        public static let hasAnyValidator = Flags(rawValue: 1 << 5)
        /// The body is one or more parts of the representation (RFC 9111 §3.3).
        public static let isPartial = Flags(rawValue: 1 << 6)
        /// Last-Modified is a strong validator, by the origin's own Date.
        public static let hasStrongDate = Flags(rawValue: 1 << 7)
        public static let hasStaleWhileRevalidate = Flags(rawValue: 1 << 10)
        public static let hasStaleIfError = Flags(rawValue: 1 << 11)

        static let staleForbidding: Flags = [.mustRevalidate, .noCache]
        /// The bits that stored facts may have; those without a name mean nothing.
        static let known = Flags(rawValue: (1 << 17) - 1)
        /// All flags except those that can keep a fresh response from being served as it is.
        static let plain = known.subtracting([.noCache, .isPartial])
    }

    public var status: UInt16
    public var flags: Flags
    public var responseTimeSeconds: Int64
    public var correctedInitialAgeSeconds: UInt32
    public var freshnessLifetimeSeconds: UInt32
    public var staleWhileRevalidateSeconds: UInt32
    public var staleIfErrorSeconds: UInt32
    public var dateSeconds: Int64
    public var lastModifiedSeconds: Int64?

    /// Whether only times tell the two apart.
    package func hasSameRules(as other: StoredFacts) -> Bool {
        var same = self
        same.responseTimeSeconds = other.responseTimeSeconds
        same.correctedInitialAgeSeconds = other.correctedInitialAgeSeconds
        same.dateSeconds = other.dateSeconds
        return same == other
    }

    public init(
        status: UInt16,
        flags: Flags,
        responseTimeSeconds: Int64,
        correctedInitialAgeSeconds: UInt32,
        freshnessLifetimeSeconds: UInt32,
        staleWhileRevalidateSeconds: UInt32,
        staleIfErrorSeconds: UInt32,
        dateSeconds: Int64,
        lastModifiedSeconds: Int64?
    ) {
        self.status = status
        self.flags = flags
        self.responseTimeSeconds = responseTimeSeconds
        self.correctedInitialAgeSeconds = correctedInitialAgeSeconds
        self.freshnessLifetimeSeconds = freshnessLifetimeSeconds
        self.staleWhileRevalidateSeconds = staleWhileRevalidateSeconds
        self.staleIfErrorSeconds = staleIfErrorSeconds
        self.dateSeconds = dateSeconds
        self.lastModifiedSeconds = lastModifiedSeconds
    }
}

// MARK: - Age and freshness

extension StoredFacts {
    /// The `current_age` of RFC 9111 §4.2.3.
    ///
    /// If the clock has gone backwards, the response has not aged since it arrived. While a process
    /// runs, the engine's clock ignores changes of the system's clock (`SystemClock`).
    public func ageSeconds(at nowSeconds: Int64) -> Int {
        let resident = DeltaSeconds.clamp(Self.difference(nowSeconds, responseTimeSeconds))
        return Int(correctedInitialAgeSeconds) + Int(resident)
    }

    public func isFresh(at nowSeconds: Int64) -> Bool {
        Int(freshnessLifetimeSeconds) > ageSeconds(at: nowSeconds)
    }

    /// Seconds since the response became stale; negative while it is fresh.
    public func stalenessSeconds(at nowSeconds: Int64) -> Int {
        ageSeconds(at: nowSeconds) - Int(freshnessLifetimeSeconds)
    }

    static func difference(_ later: Int64, _ earlier: Int64) -> Int64 {
        let (difference, overflowed) = later.subtractingReportingOverflow(earlier)
        return overflowed ? (later > earlier ? .max : .min) : difference
    }
}

// MARK: - Construction

extension StoredFacts {
    /// The facts of a response that is about to be stored.
    ///
    /// `requestTimeSeconds` is when the request was sent, `responseTimeSeconds` when the head
    /// arrived.
    public init(
        response: ResponseFacts,
        lifetime: FreshnessLifetime,
        rules: StoringRules,
        requestTimeSeconds: Int64,
        responseTimeSeconds: Int64
    ) {
        let directives = response.directives
        self.init(
            status: UInt16(clamping: response.status),
            flags: Self.flags(response, rules),
            responseTimeSeconds: responseTimeSeconds,
            correctedInitialAgeSeconds: Self.correctedInitialAge(
                response,
                requestTimeSeconds: requestTimeSeconds,
                responseTimeSeconds: responseTimeSeconds
            ),
            freshnessLifetimeSeconds: lifetime.seconds,
            staleWhileRevalidateSeconds: directives.staleWhileRevalidateSeconds ?? 0,
            staleIfErrorSeconds: directives.staleIfErrorSeconds ?? 0,
            dateSeconds: response.dateSeconds ?? responseTimeSeconds,
            lastModifiedSeconds: response.lastModifiedSeconds
        )
    }

    /// The `corrected_initial_age` of RFC 9111 §4.2.3.
    public static func correctedInitialAge(
        _ response: ResponseFacts,
        requestTimeSeconds: Int64,
        responseTimeSeconds: Int64
    ) -> UInt32 {
        let apparent = difference(responseTimeSeconds, response.dateSeconds ?? responseTimeSeconds)
        if Mutant.ignoresAgeField.isOn { return DeltaSeconds.clamp(apparent) }
        let delay = max(0, difference(responseTimeSeconds, requestTimeSeconds))
        let corrected = Int64(response.ageSeconds ?? 0).addingReportingOverflow(delay)
        return DeltaSeconds.clamp(max(apparent, corrected.overflow ? .max : corrected.partialValue))
    }

    private static func flags(_ response: ResponseFacts, _ rules: StoringRules) -> Flags {
        let directives = response.directives
        var flags: Flags = []
        flags.set(
            .noCache,
            when: directives.flags.contains(.noCache) && rules.originDirectives == .respect
        )
        flags.set(.mustRevalidate, when: directives.forbidsStale(in: rules.mode))
        flags.set(.immutable, when: directives.flags.contains(.immutable))
        flags.set(.hasStrongValidator, when: response.hasStrongValidator)
        flags.set(.hasStrongDate, when: response.hasStrongLastModified)
        flags.set(.hasAnyValidator, when: response.hasAnyValidator)
        flags.set(.isPartial, when: response.status == 206)
        flags.set(.hasStaleWhileRevalidate, when: directives.staleWhileRevalidateSeconds != nil)
        flags.set(.hasStaleIfError, when: directives.staleIfErrorSeconds != nil)
        return flags
    }
}

extension StoredFacts.Flags {
    fileprivate mutating func set(_ flag: Self, when condition: Bool) {
        if condition { insert(flag) }
    }
}

extension ResponseDirectives {
    /// RFC 9111 §5.2.2.2, §5.2.2.8, and §5.2.2.10: s-maxage implies proxy-revalidate.
    public func forbidsStale(in mode: CacheMode) -> Bool {
        if Mutant.ignoresMustRevalidate.isOn { return false }
        if flags.contains(.mustRevalidate) || flags.contains(.doubtfulMustRevalidate) {
            return true
        }
        guard mode == .shared else { return false }
        return flags.contains(.proxyRevalidate) || sharedMaxAgeSeconds != nil
    }

    /// Whether `no-cache="…"`, or `private="…"` in a shared cache, names fields to omit.
    public func omitsFields(in mode: CacheMode) -> Bool {
        flags.contains(.noCacheFields) || (mode == .shared && flags.contains(.privateFields))
    }

    /// Whether Set-Cookie is among the omitted fields, so that the stored response sets no cookie.
    public func omitsCookies(in mode: CacheMode) -> Bool {
        flags.contains(.namesSetCookie) && omitsFields(in: mode)
    }
}

// MARK: - Bytes

extension StoredFacts {
    public static let encodedBytes = 48
    private static let version: UInt8 = 1
    private static let none = Int64.min

    public func encode(into target: UnsafeMutableRawBufferPointer) {
        precondition(target.count >= Self.encodedBytes)
        func put(_ value: some FixedWidthInteger, at offset: Int) {
            target.storeBytes(of: value.littleEndian, toByteOffset: offset, as: type(of: value))
        }
        put(Self.version, at: 0)
        put(UInt8(0), at: 1)
        put(status, at: 2)
        put(flags.rawValue, at: 4)
        put(responseTimeSeconds, at: 8)
        put(correctedInitialAgeSeconds, at: 16)
        put(freshnessLifetimeSeconds, at: 20)
        put(staleWhileRevalidateSeconds, at: 24)
        put(staleIfErrorSeconds, at: 28)
        put(dateSeconds, at: 32)
        put(lastModifiedSeconds ?? Self.none, at: 40)
        assert(Self(decoding: UnsafeRawBufferPointer(target)) == self, "reads as written")
    }

    /// Reads the first 48 bytes; returns `nil` unless `encode` could have written them.
    public init?(decoding source: UnsafeRawBufferPointer) {
        guard source.count >= Self.encodedBytes, source[0] == Self.version, source[1] == 0 else {
            return nil
        }
        func u32(_ offset: Int) -> UInt32 {
            UInt32(littleEndian: source.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
        }
        func i64(_ offset: Int) -> Int64 {
            Int64(littleEndian: source.loadUnaligned(fromByteOffset: offset, as: Int64.self))
        }
        let flags = Flags(rawValue: u32(4))
        guard flags.isSubset(of: .known) else { return nil }
        for offset in stride(from: 16, through: 28, by: 4) where u32(offset) > DeltaSeconds.maximum
        {
            return nil
        }
        self.init(
            status: UInt16(littleEndian: source.loadUnaligned(fromByteOffset: 2, as: UInt16.self)),
            flags: flags,
            responseTimeSeconds: i64(8),
            correctedInitialAgeSeconds: u32(16),
            freshnessLifetimeSeconds: u32(20),
            staleWhileRevalidateSeconds: u32(24),
            staleIfErrorSeconds: u32(28),
            dateSeconds: i64(32),
            lastModifiedSeconds: i64(40) == Self.none ? nil : i64(40)
        )
    }

    /// The facts of a response that is complete and fresh and needs no validation.
    ///
    /// Reading them takes only part of the encoding. Such a response may be served as it is to a
    /// request without cache directives, conditions or ranges.
    public struct Fresh {
        public let status: UInt16
        public let ageSeconds: Int
        public let lifetimeSeconds: Int

        /// Returns `nil` for other responses, and for bytes that `encode` could not have written.
        public init?(_ source: UnsafeRawBufferPointer, nowSeconds: Int64) {
            precondition(source.count >= StoredFacts.encodedBytes)
            func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int) -> Number {
                Number(littleEndian: source.loadUnaligned(fromByteOffset: offset, as: Number.self))
            }
            let flags = Flags(rawValue: load(4))
            guard load(0) == UInt16(StoredFacts.version), flags.isSubset(of: .plain) else {
                return nil
            }
            let initialAge: UInt32 = load(16)
            let lifetime: UInt32 = load(20)
            guard initialAge <= DeltaSeconds.maximum, lifetime <= DeltaSeconds.maximum else {
                return nil
            }
            let resident = StoredFacts.difference(nowSeconds, load(8))
            ageSeconds = Int(initialAge) + Int(DeltaSeconds.clamp(resident))
            lifetimeSeconds = Int(lifetime)
            status = load(2)
            guard ageSeconds < lifetimeSeconds else { return nil }
        }
    }
}
