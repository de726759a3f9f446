/// The cache's answer.
public struct CacheResponse: Sendable {
    /// The status code.
    public var status: Int
    /// The fields, with `Age` and `Cache-Status` where the answer came through the cache.
    public var fields: HeaderFields
    /// The content.
    public var body: BodyStream
    /// What the cache did.
    public var info: CacheInfo

    /// An answer with the given parts.
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
