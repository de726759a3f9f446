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
    /// Out of line: most requests wish for nothing, and are copied as if they had no options.
    private indirect enum Content {
        case usual
        case particular(Wishes)
    }

    private struct Wishes {
        var policy: CachePolicy?
        var partition = ""
        var key: String?
        var timeoutSeconds: Double?
        var collapsing = Collapsing.shared
        var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)?
    }

    private var content = Content.usual

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
        let isUsual =
            policy == nil && partition.isEmpty && key == nil && timeoutSeconds == nil
            && collapsing == .shared && onInformational == nil
        guard !isUsual else { return }
        wishes = Wishes(
            policy: policy,
            partition: partition,
            key: key,
            timeoutSeconds: timeoutSeconds,
            collapsing: collapsing,
            onInformational: onInformational
        )
    }

    private var wishes: Wishes {
        get {
            guard case .particular(let wishes) = content else { return Wishes() }
            return wishes
        }
        set { content = .particular(newValue) }
    }

    /// Whether nothing is wished for.
    var isUsual: Bool {
        if case .usual = content { return true }
        return false
    }
}

extension RequestOptions {
    /// The policy, or nil for the cache's default.
    public var policy: CachePolicy? {
        get { isUsual ? nil : wishes.policy }
        set { wishes.policy = newValue }
    }
    /// Keeps this caller's entries apart from those of other partitions.
    public var partition: String {
        get { isUsual ? "" : wishes.partition }
        set { wishes.partition = newValue }
    }
    /// The key to use instead of the method and URL: makes POST and QUERY answers storable.
    public var key: String? {
        get { isUsual ? nil : wishes.key }
        set { wishes.key = newValue }
    }
    /// How many seconds the whole answer's head may take, or nil for no limit of its own.
    public var timeoutSeconds: Double? {
        get { isUsual ? nil : wishes.timeoutSeconds }
        set { wishes.timeoutSeconds = newValue }
    }
    /// Whether concurrent misses may share one origin request.
    public var collapsing: Collapsing {
        get { isUsual ? .shared : wishes.collapsing }
        set { wishes.collapsing = newValue }
    }
    /// Called for each 1xx head the origin sends before its answer.
    public var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)? {
        get { isUsual ? nil : wishes.onInformational }
        set { wishes.onInformational = newValue }
    }
}
