/// The way in which the cache answered one request.
public struct CacheInfo: Sendable {
    /// The source of a response.
    ///
    /// A later version may add cases: a `switch` over sources needs a `default`.
    public enum Source: String, Hashable, Sendable, CaseIterable {
        /// The response was stored and fresh.
        case fresh
        /// The response was stored and stale, and its use was allowed.
        case stale
        /// The response was stored, and the origin confirmed it for this request, or for another
        /// that this one waited for.
        case revalidated
        /// The response was stored, and served because the fetch failed.
        case fallback
        /// The origin sent the response to this caller's own request.
        case origin
        /// The origin sent the response to a request shared with other callers.
        case collapsed
        /// The cache made the response: a 504 for `only-if-cached`.
        case generated
    }

    /// The tier that held a stored response.
    public enum Tier: String, Hashable, Sendable {
        /// The memory.
        case memory
        /// The disk, or the store configured in its place.
        case disk
        /// The store that the machines of the fleet share.
        case shared
    }

    /// The source of the response.
    public var source: Source
    private var marks = Marks()
    private var statusOfOrigin = OptionalNumber<UInt16>(nil)
    private var storedAt = OptionalNumber<UInt32>(nil)
    private var ageNumber = OptionalNumber<Int>(nil)
    private var remainingNumber = OptionalNumber<Int>(nil)
    private var remarks = Remarks.none

    /// Creates the description of a response.
    public init(source: Source, tier: Tier? = nil) {
        self.source = source
        self.tier = tier
    }

    /// Flags in one byte, so that a response is 128 bytes and is moved without a call.
    private struct Marks: OptionSet {
        let rawValue: UInt8

        static let isStored = Self(rawValue: 1)
        static let wasInMemory = Self(rawValue: 2)
        static let wasOnDisk = Self(rawValue: 4)
        static let isMemoryOnly = Self(rawValue: 8)
        static let wasShared = Self(rawValue: 16)
        static let wasFresh = Self(rawValue: 32)
    }

    /// Out of line, because most responses have no remarks.
    private indirect enum Remarks {
        case none
        case some(Content)

        struct Content {
            var refusal: StoreRefusalReason?
            var originFields: HeaderFields?
            var fallbackError: (any Error)?
            var userInfo: ByteChunk?
            var pendingStore: PendingStore?
        }

        var content: Content {
            get {
                guard case .some(let content) = self else { return Content() }
                return content
            }
            set { self = .some(newValue) }
        }
    }

    /// Whether a stored response was used (a download cache's `didUseCachedResponse`).
    public var didUseCachedResponse: Bool {
        switch source {
        case .fresh, .stale, .revalidated, .fallback: true
        case .origin, .collapsed, .generated: false
        }
    }

    /// Whether the response is past its lifetime.
    public var isStale: Bool {
        switch source {
        case .stale: true
        // A fresh response also stands in, for example if the client wanted it confirmed.
        case .fallback: (remainingSeconds ?? 0) <= 0
        default: false
        }
    }
}

extension CacheInfo {
    /// The tier that held the stored response.
    public var tier: Tier? {
        get {
            if marks.contains(.wasInMemory) { return .memory }
            if marks.contains(.wasOnDisk) { return .disk }
            return marks.contains(.wasShared) ? .shared : nil
        }
        set {
            marks.subtract([.wasInMemory, .wasOnDisk, .wasShared])
            switch newValue {
            case .memory: marks.insert(.wasInMemory)
            case .disk: marks.insert(.wasOnDisk)
            case .shared: marks.insert(.wasShared)
            case nil: break
            }
        }
    }
    /// Whether a confirmed response was fresh, and only the request demanded the confirmation.
    package var wasFresh: Bool {
        get { marks.contains(.wasFresh) }
        set { if newValue { marks.insert(.wasFresh) } else { marks.remove(.wasFresh) } }
    }
    /// Whether the response is stored for later requests, as far as that is known with its head.
    public var isStored: Bool {
        get { marks.contains(.isStored) }
        set { if newValue { marks.insert(.isStored) } else { marks.remove(.isStored) } }
    }
    /// The tiers that may keep the stored response.
    public var place: StoragePlace {
        get { marks.contains(.isMemoryOnly) ? .memoryOnly : .everywhere }
        set {
            switch newValue {
            case .memoryOnly: marks.insert(.isMemoryOnly)
            case .everywhere: marks.remove(.isMemoryOnly)
            }
        }
    }
    /// The age of a stored response.
    public var age: Duration? { ageSeconds.map { .seconds($0) } }
    /// The time until the stored response becomes stale; negative if it is stale already.
    public var remainingLifetime: Duration? { remainingSeconds.map { .seconds($0) } }

    package var ageSeconds: Int? {
        get { ageNumber.value }
        set { ageNumber.value = newValue }
    }
    package var remainingSeconds: Int? {
        get { remainingNumber.value }
        set { remainingNumber.value = newValue }
    }
    /// The Unix time of storing, in seconds; at most the largest that 32 bits hold, in 2106.
    public var storedAtSeconds: Int64? {
        get { storedAt.value.map(Int64.init) }
        set { storedAt.value = newValue.map(Int.init) }
    }
    /// The status of the origin's response, if the origin was asked.
    public var originStatus: Int? {
        get { statusOfOrigin.value }
        set { statusOfOrigin.value = newValue }
    }
    /// The reason why the response was not stored.
    public var refusal: StoreRefusalReason? {
        get { remarks.content.refusal }
        set { remarks.content.refusal = newValue }
    }
    /// The fields of the 304 that confirmed a stored response.
    public var originFields: HeaderFields? {
        get { remarks.content.originFields }
        set { remarks.content.originFields = newValue }
    }
    /// The error of the failed fetch, for a stored response served in its place.
    public var fallbackError: (any Error)? {
        get { remarks.content.fallbackError }
        set { remarks.content.fallbackError = newValue }
    }
    /// The bytes that the application stored beside the entry.
    public var userInfo: ByteChunk? {
        get { remarks.content.userInfo }
        set { remarks.content.userInfo = newValue }
    }
    /// The store that the fetch has left to the caller (`RequestOptions.leavesStoring`); `nil` if
    /// there is nothing for the caller to store.
    package var pendingStore: PendingStore? {
        get { remarks.content.pendingStore }
        set { remarks.content.pendingStore = newValue }
    }
}
