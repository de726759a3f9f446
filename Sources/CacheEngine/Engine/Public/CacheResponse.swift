/// A response from the cache.
public struct CacheResponse: Sendable {
    /// The status code.
    public var status: Int
    /// The header fields, with `Cache-Status` unless the configuration omits it.
    ///
    /// `Age` is the cache's own for a response that was stored or shared. The request that fetched a
    /// response gets the origin's.
    public var fields: HeaderFields
    /// The content.
    public var body: BodyStream
    /// The way in which the cache answered the request.
    public var info: CacheInfo

    /// Creates a response from its parts.
    public init(
        status: Int,
        fields: HeaderFields = HeaderFields(),
        body: BodyStream = .empty,
        info: CacheInfo = CacheInfo(source: .origin)
    ) {
        self.status = status
        self.fields = fields
        self.body = body
        self.info = info
    }
}
