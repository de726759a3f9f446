/// Whoever is asked when the cache has no answer.
public protocol Origin: Sendable {
    /// Sends the request and returns as soon as the head of the final answer is there.
    ///
    /// The body follows as the stream is read; a body that is never read, or whose stream is
    /// dropped, is cancelled. Cancelling the task ends the exchange. Redirects are answers like
    /// any other: nothing is followed, decoded or retried here.
    func fetch(_ request: OriginRequest) async throws -> OriginResponse
}

/// What the cache asks an origin for.
public struct OriginRequest: Sendable {
    /// The method.
    public var method: Method
    /// The absolute URL, without fragment.
    public var url: String
    /// The fields to send.
    public var fields: HeaderFields
    /// The content, for the methods that have one.
    public var body: BodyStream?
    /// How long the head of the answer may take, in seconds.
    public var timeoutSeconds: Double?
    /// Called for each 1xx head before the answer.
    public var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)?

    /// A request to an origin.
    public init(
        method: Method = .get,
        url: String,
        fields: HeaderFields = HeaderFields(),
        body: BodyStream? = nil,
        timeoutSeconds: Double? = nil,
        onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)? = nil
    ) {
        self.method = method
        self.url = url
        self.fields = fields
        self.body = body
        self.timeoutSeconds = timeoutSeconds
        self.onInformational = onInformational
    }
}

/// An origin's answer: the head, and a body that arrives as it is read.
public struct OriginResponse: Sendable {
    /// The status code.
    public var status: Int
    /// The fields.
    public var fields: HeaderFields
    /// The content; throws where the connection broke or the length was wrong.
    public var body: BodyStream

    /// An answer with the given parts.
    public init(status: Int, fields: HeaderFields = HeaderFields(), body: BodyStream = .empty) {
        self.status = status
        self.fields = fields
        self.body = body
    }
}
