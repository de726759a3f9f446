/// Code of the application's own that the cache asks on the way.
public struct CacheHooks: Sendable {
    /// Names the entry of a request differently: nil keeps method and URL.
    ///
    /// For signed URLs and parameters that do not matter. Called for each request.
    public var key: (@Sendable (CacheRequest) -> String?)?

    /// Decides about an answer that may be stored, once, before any of it is.
    ///
    /// Throwing, or taking longer than `willStoreSecondsMax`, means: not stored. The caller's
    /// answer is the same whatever this says.
    public var willStore: (@Sendable (StoreProposal) async throws -> StoreProposal?)?

    /// How long `willStore` may take.
    public var willStoreSecondsMax = 5.0

    /// Whether a request may share an origin request with others; nil lets every request.
    ///
    /// Asked where the request's own options let it, on the caller's actor: be quick.
    public var collapsing: (@Sendable (CacheRequest) -> RequestOptions.Collapsing)?

    /// Told what happens, on the thread it happens on: be quick.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?

    /// No hooks.
    public init() {}
}

/// An answer about to be stored, as the `willStore` hook sees and changes it.
public struct StoreProposal: Sendable {
    /// The request it answers.
    public let request: CacheRequest
    /// The status.
    public let status: Int
    /// The fields as they will be stored and served later.
    public var fields: HeaderFields
    /// How long it will be fresh, in seconds; once changed, it holds after each 304 too.
    public var lifetimeSeconds: Int
    /// Its storage class.
    public var storageClass: StorageClass
    /// Where it may be kept.
    public var place: StoragePlace
    /// Its tags.
    public var tags: [String]
    /// What to keep beside it, given back with every hit.
    public var userInfo: ByteChunk?

    /// The same, kept in memory only.
    ///
    /// `{ $0.request.url.hasPrefix("https:") ? $0.inMemoryOnly : $0 }` keeps what came over TLS
    /// out of all files.
    public var inMemoryOnly: StoreProposal {
        var proposal = self
        proposal.place = .memoryOnly
        return proposal
    }
}

/// Something that happened in a cache.
public enum CacheEvent: Sendable {
    /// A request was answered.
    case answered(CacheInfo.Source)
    /// An answer was not stored.
    case refused(StoreRefusalReason)
    /// The origin could not be asked, or broke off.
    case originFailed(any Error)
    /// A request left a crowd and asked for itself, for that reason.
    case escaped(String)
    /// A background refresh ended.
    case refreshed(succeeded: Bool)
    /// The `willStore` hook threw or took too long.
    case hookFailed(any Error)
    /// A store operation failed.
    case storageFailed(any Error)
}
