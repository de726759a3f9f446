/// What a caller asks the cache for.
public struct CacheRequest: Sendable {
    /// The method.
    public var method: Method
    /// The absolute URL, as text; a fragment is not part of the request.
    public var url: String
    /// The fields to send, and to select a variant by.
    public var fields: HeaderFields
    /// The content, for the methods that have one.
    public var body: BodyStream?
    /// What this request wants done differently from the cache's configuration.
    public var options: RequestOptions

    /// A request for `url`.
    public init(
        method: Method = .get,
        url: String,
        fields: HeaderFields = HeaderFields(),
        body: BodyStream? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.options = options
    }
}

/// What one request wants done differently.
public struct RequestOptions: Sendable {
    /// The policy, or nil for the cache's default.
    public var policy: CachePolicy?
    /// Keeps this caller's entries apart from those of other partitions.
    public var partition: String
    /// The key to use instead of the method and URL: makes POST and QUERY answers storable.
    public var key: String?
    /// How many seconds the whole answer's head may take, or nil for no limit of its own.
    public var timeoutSeconds: Double?
    /// Whether concurrent misses may share one origin request.
    public var collapsing: Collapsing
    /// Called for each 1xx head the origin sends before its answer.
    public var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)?

    /// Whether concurrent misses of one key share one origin request.
    public enum Collapsing: Hashable, Sendable {
        /// They do.
        case shared
        /// This request is answered as if it were alone.
        case alone
    }

    /// Options that change nothing.
    public init(
        policy: CachePolicy? = nil,
        partition: String = "",
        key: String? = nil,
        timeoutSeconds: Double? = nil,
        collapsing: Collapsing = .shared,
        onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)? = nil
    ) {
        self.policy = policy
        self.partition = partition
        self.key = key
        self.timeoutSeconds = timeoutSeconds
        self.collapsing = collapsing
        self.onInformational = onInformational
    }
}
