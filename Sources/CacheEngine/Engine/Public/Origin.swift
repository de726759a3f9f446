/// The server that the cache asks when it has no stored response to use.
public protocol Origin: Sendable {
    /// Sends the request, and returns as soon as the head of the final response has arrived.
    ///
    /// The body arrives as the stream is read. A body that is never read, or whose stream is
    /// released, is cancelled. Cancelling the task ends the exchange. Redirects are returned like
    /// any other response: nothing is followed, decoded or retried here.
    ///
    /// The cache calls this in a task of its own, not in the task of a caller. The task prefers
    /// `RequestOptions.taskExecutor` of the request that began the fetch, or else
    /// `HTTPCache.Configuration.taskExecutor`; without both it runs on the global executor.
    nonisolated(nonsending) func fetch(_ request: OriginRequest) async throws -> OriginResponse
}

/// A request from the cache to an origin.
public struct OriginRequest: Sendable {
    /// The absolute URL, without fragment.
    public var url: String
    /// The request method.
    public var method: HTTPMethod
    /// The header fields.
    public var fields: HeaderFields
    /// The content, for methods that have content.
    public var body: BodyStream?
    /// The time that the head of the response may take.
    public var timeout: Duration?
    /// The function to call for each 1xx head before the response.
    public var onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)?
}

// In an extension, so that the memberwise initialiser remains, which takes the URL first: one that
// assigns the properties of so wide a value by itself copies the whole value.
extension OriginRequest {
    /// Creates a request to an origin.
    public init(
        method: HTTPMethod = .get,
        url: String,
        fields: HeaderFields = HeaderFields(),
        body: BodyStream? = nil,
        timeout: Duration? = nil,
        onInformational: (@Sendable (_ status: Int, _ fields: HeaderFields) -> Void)? = nil
    ) {
        self.init(
            url: url,
            method: method,
            fields: fields,
            body: body,
            timeout: timeout,
            onInformational: onInformational
        )
    }
}

/// An origin's response: the head, and a body that arrives as it is read.
public struct OriginResponse: Sendable {
    /// The header fields.
    public var fields: HeaderFields
    /// The status code.
    public var status: Int
    /// The content; reading it throws if the connection broke or the length was wrong.
    public var body: BodyStream
}

// For the same reason; the memberwise initialiser takes the fields first.
extension OriginResponse {
    /// Creates a response from its parts.
    public init(status: Int, fields: HeaderFields = HeaderFields(), body: BodyStream = .empty) {
        self.init(fields: fields, status: status, body: body)
    }
}
