/// The application's own functions that the cache calls.
public struct CacheHooks: Sendable {
    /// Returns the key of a request's entry, or `nil` to keep the URL as the key.
    ///
    /// It serves signed URLs, and parameters that do not change the response. A key that it returns
    /// never equals that of a URL. It is called for each request, and perhaps several times.
    public var key: (@Sendable (CacheRequest) -> String?)?

    /// Changes or refuses a response that may be stored; called once, before any of it is stored.
    ///
    /// The response is not stored if the hook throws, or takes longer than `maximumWillStoreTime`.
    /// The caller gets the same response in every case.
    public var willStore: (@Sendable (StoreProposal) async throws -> StoreProposal?)?

    /// The time that `willStore` may take.
    public var maximumWillStoreTime = Duration.seconds(5.0)

    /// Whether a request may share an origin request with others; `nil` permits every request.
    ///
    /// It is called only if the request's own options permit sharing. It runs on the caller's actor
    /// and must return quickly.
    public var collapsing: (@Sendable (CacheRequest) -> RequestOptions.Collapsing)?

    /// Receives each event, on the thread on which the event happens; it must return quickly.
    public var onEvent: (@Sendable (CacheEvent) -> Void)?

    /// Receives the events of storage and fleet alone; a server that needs no others saves the cost
    /// of an event for each response.
    package var onFault: (@Sendable (CacheEvent) -> Void)?

    /// Creates a value without hooks.
    public init() {}
}

/// A response about to be stored, as the `willStore` hook sees and changes it.
public struct StoreProposal: Sendable {
    /// The request of the response.
    public let request: CacheRequest
    /// The status code.
    public let status: Int
    /// The fields as they will be stored and served later.
    ///
    /// `Vary`, `Age` and the fields that frame the body, as `Content-Length`, `Content-Range` and
    /// `Connection`, stay those of the response.
    public var fields: HeaderFields
    /// The time that the response stays fresh; a changed value also holds after each 304.
    public var lifetime: Duration
    /// The storage class of the entry.
    public var storageClass: StorageClass
    /// The tiers that may keep the entry.
    public var place: StoragePlace
    /// The tags of the entry; those that only the changed `fields` name are added to them.
    public var tags: [String]
    /// Bytes kept beside the entry, and returned with every hit.
    public var userInfo: ByteChunk?

    /// The same proposal, kept in memory only.
    ///
    /// `{ $0.request.url.hasPrefix("https:") ? $0.inMemoryOnly : $0 }` keeps every response
    /// received over TLS out of all files.
    public var inMemoryOnly: StoreProposal {
        var proposal = self
        proposal.place = .memoryOnly
        return proposal
    }
}
