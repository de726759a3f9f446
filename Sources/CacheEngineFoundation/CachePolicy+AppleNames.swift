public import CacheEngine

/// The policies by the names of the URL loading system.
extension CachePolicy {
    /// HTTP's own rules: `standard`.
    public static let useProtocolCachePolicy = standard
    /// The origin's response replaces the stored one: `reload`.
    public static let reloadIgnoringLocalCacheData = reload
    /// The same, and caches on the way must not answer: `reloadThroughCaches`.
    public static let reloadIgnoringLocalAndRemoteCacheData = reloadThroughCaches
    /// A stored response of any age, otherwise the origin's: `cacheElseLoad`.
    public static let returnCacheDataElseLoad = cacheElseLoad
    /// A stored response of any age, never the origin's: `cacheOnly`.
    public static let returnCacheDataDontLoad = cacheOnly
    /// A stored response only after the origin has confirmed it: `revalidate`.
    public static let reloadRevalidatingCacheData = revalidate
}
