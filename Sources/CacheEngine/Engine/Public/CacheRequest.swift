import HTTPCaching

/// A request to the cache.
public struct CacheRequest: Sendable {
    /// The absolute URL; a fragment is not part of the request.
    public var url: String
    /// The request method.
    public var method: HTTPMethod
    /// The header fields, which also select a variant.
    public var fields: HeaderFields
    /// The content, for methods that have content.
    public var body: BodyStream?
    /// The options that differ from the cache's configuration.
    public var options: RequestOptions
}

// In an extension, so that the memberwise initialiser remains, which takes the URL first: one that
// assigns the properties of so wide a value by itself copies the whole value.
extension CacheRequest {
    /// Creates a request for `url`.
    public init(
        method: HTTPMethod = .get,
        url: String,
        fields: HeaderFields = HeaderFields(),
        body: BodyStream? = nil,
        options: RequestOptions = RequestOptions()
    ) {
        self.init(url: url, method: method, fields: fields, body: body, options: options)
    }
}

extension CacheRequest: CustomStringConvertible {
    /// The method and the URL; fields may have credentials.
    public var description: String { "\(method) \(url)" }
}

/// The options of one request that differ from the cache's configuration.
public struct RequestOptions: Sendable {
    /// Out of line, because most requests set no option; such requests are cheap to copy.
    private indirect enum Content {
        case usual
        case particular(Wishes)
    }

    private struct Wishes {
        var policy: CachePolicy?
        var partition = ""
        var key: String?
        var timeout: Duration?
        var collapsing = Collapsing.shared
        var leavesStoring = false
    }

    private var content = Content.usual
    /// The executor of the work that the cache begins for the request; `nil` for the cache's own
    /// (`HTTPCache.Configuration.taskExecutor`).
    ///
    /// A fetch runs on the executor of the request that founds it, also for the requests that join
    /// it. A miss that needs no disk never leaves the executor if the caller's task prefers it too:
    /// a server passes the event loop of the connection.
    public var taskExecutor: (any TaskExecutor)?
    /// The function called for each 1xx head that the origin sends before its response.
    public var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)?

    /// Whether concurrent misses of one key share one origin request.
    public enum Collapsing: Hashable, Sendable {
        /// They share one origin request.
        case shared
        /// This request is sent to the origin by itself.
        case alone
    }

    /// Creates options that change nothing.
    public init() {}

    /// Creates options; the defaults change nothing.
    public init(
        policy: CachePolicy? = nil,
        partition: String = "",
        key: String? = nil,
        timeout: Duration? = nil,
        collapsing: Collapsing = .shared,
        onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)? = nil,
        taskExecutor: (any TaskExecutor)? = nil
    ) {
        self.taskExecutor = taskExecutor
        self.onInformational = onInformational
        let isUsual =
            policy == nil && partition.isEmpty && key == nil && timeout == nil
            && collapsing == .shared
        guard !isUsual else { return }
        wishes = Wishes(
            policy: policy,
            partition: partition,
            key: key,
            timeout: timeout,
            collapsing: collapsing
        )
    }

    private var wishes: Wishes {
        get {
            guard case .particular(let wishes) = content else { return Wishes() }
            return wishes
        }
        set { content = .particular(newValue) }
    }

    /// Whether no option is set that a look-up must know.
    var isUsual: Bool {
        if case .usual = content { return true }
        return false
    }
}

extension RequestOptions {
    /// The policy; `nil` for the cache's default.
    public var policy: CachePolicy? {
        get { isUsual ? nil : wishes.policy }
        set { wishes.policy = newValue }
    }
    /// The name that keeps this caller's entries apart from those of other partitions.
    public var partition: String {
        get { isUsual ? "" : wishes.partition }
        set { wishes.partition = newValue }
    }
    /// The key that replaces the URL; with it responses to POST and QUERY can be stored.
    public var key: String? {
        get { isUsual ? nil : wishes.key }
        set { wishes.key = newValue }
    }
    /// The time that the head of the response may take, which may exceed
    /// `OriginLimits.maximumHeadTime`; `nil` leaves it to that limit.
    ///
    /// It begins anew with each piece of the request's content that is sent.
    public var timeout: Duration? {
        get { isUsual ? nil : wishes.timeout }
        set { wishes.timeout = newValue }
    }
    /// Whether concurrent misses may share one origin request.
    public var collapsing: Collapsing {
        get { isUsual ? .shared : wishes.collapsing }
        set { wishes.collapsing = newValue }
    }
    /// Whether the caller itself stores the response of the fetch that its request founds, with
    /// the `CacheInfo.pendingStore` of the response; callers that share the fetch have it too.
    ///
    /// A 304 still freshens the stored response. Any other response ends the stored one. That of a
    /// refresh in the background, for which no caller decides, does not: it is dropped, and the next
    /// request asks the origin before it uses the stored response. Nothing is stored for a request
    /// with `Range`, whose caller sees only a part of the body.
    package var leavesStoring: Bool {
        get { isUsual ? false : wishes.leavesStoring }
        set { wishes.leavesStoring = newValue }
    }
}

extension CacheRequest {
    /// Whether the key determines the response: GET and HEAD without content, and these two, POST
    /// and QUERY under a key of the caller's own.
    ///
    /// The content of a GET has no meaning (RFC 9110 §9.3.1). A response of an origin that reads it
    /// must not be served to requests without content. Other methods change what is stored: they
    /// are sent to the origin, whatever their key (RFC 9111 §4).
    var isAnsweredByKey: Bool {
        switch method.kind {
        case .get, .head: break
        case .post, .query: return options.key != nil
        default: return false
        }
        if case .none = body { return true }
        if !options.isUsual, options.key != nil { return true }
        return body?.count == 0
    }

    /// The condition of the request on a stored response that is whole and fresh.
    var hitCondition: RequestFacts.HitCondition {
        guard case .get = method.kind else { return .other }
        return fields.hitCondition
    }
}

extension String {
    /// The URL without its fragment, which is not part of a request.
    var withoutFragment: String {
        guard let length = withByteRun({ $0.index(of: .numberSign) }) else { return self }
        return String(utf8.prefix(length)) ?? self
    }
}
