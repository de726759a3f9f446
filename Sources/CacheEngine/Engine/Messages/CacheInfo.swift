/// What the cache did to answer one request.
public struct CacheInfo: Sendable {
    /// Where an answer came from.
    public enum Source: String, Hashable, Sendable, CaseIterable {
        /// Stored and fresh.
        case fresh
        /// Stored, past its lifetime, and allowed nevertheless.
        case stale
        /// Stored, and confirmed by the origin for this request.
        case revalidated
        /// Stored, and served because loading failed.
        case fallback
        /// From the origin, by a request of this caller's own.
        case origin
        /// From the origin, by a request shared with others.
        case collapsed
        /// Made by the cache: a 504 for `only-if-cached`.
        case generated
    }

    /// Which part of the store answered.
    public enum Tier: String, Hashable, Sendable {
        /// Memory.
        case memory
        /// The disk, or the store configured in its place.
        case disk
    }

    /// Where the answer came from.
    public var source: Source
    private var marks = Marks()
    private var statusOfOrigin = OptionalNumber<UInt16>(nil)
    private var storedAt = OptionalNumber<UInt32>(nil)
    private var age = OptionalNumber<Int>(nil)
    private var remaining = OptionalNumber<Int>(nil)
    private var remarks = Remarks.none

    /// What the cache did.
    public init(source: Source, tier: Tier? = nil) {
        self.source = source
        self.tier = tier
    }

    /// One byte: with it an answer is 128 bytes, and is moved without a call.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let isStored = Self(rawValue: 1)
        static let wasInMemory = Self(rawValue: 2)
        static let wasOnDisk = Self(rawValue: 4)
    }

    /// Out of line: most answers have none of it.
    private indirect enum Remarks {
        case none
        case some(Content)

        struct Content {
            var refusal: StoreRefusalReason?
            var originFields: HeaderFields?
            var fallbackError: (any Error)?
            var userInfo: ByteChunk?
        }

        var content: Content {
            get {
                guard case .some(let content) = self else { return Content() }
                return content
            }
            set { self = .some(newValue) }
        }
    }

    /// Whether a stored answer was used (a download cache's `didUseCachedResponse`).
    public var didUseCachedResponse: Bool {
        switch source {
        case .fresh, .stale, .revalidated, .fallback: true
        case .origin, .collapsed, .generated: false
        }
    }

    /// Whether the answer is past its lifetime.
    public var isStale: Bool {
        switch source {
        case .stale, .fallback: true
        default: false
        }
    }
}

extension CacheInfo {
    /// Which part of the store held it, for a stored answer.
    public var tier: Tier? {
        get {
            if marks.contains(.wasInMemory) { return .memory }
            return marks.contains(.wasOnDisk) ? .disk : nil
        }
        set {
            marks.subtract([.wasInMemory, .wasOnDisk])
            switch newValue {
            case .memory: marks.insert(.wasInMemory)
            case .disk: marks.insert(.wasOnDisk)
            case nil: break
            }
        }
    }
    /// Whether the answer is now stored for later requests.
    public var isStored: Bool {
        get { marks.contains(.isStored) }
        set { if newValue { marks.insert(.isStored) } else { marks.remove(.isStored) } }
    }
    /// The answer's age in seconds, for a stored answer.
    public var ageSeconds: Int? {
        get { age.value }
        set { age.value = newValue }
    }
    /// Seconds until it is (negative: since it was) stale.
    public var remainingSeconds: Int? {
        get { remaining.value }
        set { remaining.value = newValue }
    }
    /// Seconds since 1970 at which it was stored; until 2106, as everything that is stored.
    public var storedAtSeconds: Int64? {
        get { storedAt.value.map(Int64.init) }
        set { storedAt.value = newValue.map(Int.init) }
    }
    /// The status of the origin's own answer, when it was asked.
    public var originStatus: Int? {
        get { statusOfOrigin.value }
        set { statusOfOrigin.value = newValue }
    }
    /// Why the answer was not stored.
    public var refusal: StoreRefusalReason? {
        get { remarks.content.refusal }
        set { remarks.content.refusal = newValue }
    }
    /// The fields of the 304 that confirmed a stored answer.
    public var originFields: HeaderFields? {
        get { remarks.content.originFields }
        set { remarks.content.originFields = newValue }
    }
    /// Why loading failed, for an answer that stands in.
    public var fallbackError: (any Error)? {
        get { remarks.content.fallbackError }
        set { remarks.content.fallbackError = newValue }
    }
    /// What was kept beside the entry by whoever stored it.
    public var userInfo: ByteChunk? {
        get { remarks.content.userInfo }
        set { remarks.content.userInfo = newValue }
    }
}

/// Why an answer was not stored; an open set with a stable name for each reason.
public struct StoreRefusalReason: Hashable, Sendable, CustomStringConvertible {
    /// The reason's stable name, as it appears in metrics.
    public let description: String

    /// A reason of that name.
    public init(_ description: String) { self.description = description }
}
