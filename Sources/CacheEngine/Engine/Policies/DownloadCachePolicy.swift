/// The policy bits of the classic download caches (ASIHTTPRequest), and what they mean together.
///
/// Their precedence: `doNotReadFromCache` beats everything; then `dontLoad`; then, with something
/// stored, `onlyLoadIfNotCached` beats the two ways of asking, and asking when stale beats asking
/// always; `fallbackToCacheIfLoadFails` applies after a failure.
public struct DownloadCachePolicy: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: Int

    /// The policy with those bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Stored answers are not used, not even after a failure.
    public static let doNotReadFromCache = Self(rawValue: 1)
    /// Nothing stored changes.
    public static let doNotWriteToCache = Self(rawValue: 2)
    /// The origin is asked once the stored answer is stale: what happens without any bit.
    public static let askServerIfModifiedWhenStale = Self(rawValue: 4)
    /// The origin is always asked.
    public static let askServerIfModified = Self(rawValue: 8)
    /// A stored answer of any age is used without asking.
    public static let onlyLoadIfNotCached = Self(rawValue: 16)
    /// The origin is never asked.
    public static let dontLoad = Self(rawValue: 32)
    /// A stored answer of any age stands in when loading fails.
    public static let fallbackToCacheIfLoadFails = Self(rawValue: 64)
}

extension CachePolicy {
    /// The policy that the download-cache bits mean.
    public init(_ bits: DownloadCachePolicy) {
        self.init(writes: !bits.contains(.doNotWriteToCache))
        if bits.contains(.doNotReadFromCache) {
            reads = false
            fallback = .never
            return
        }
        if bits.contains(.dontLoad) {
            freshness = .acceptAnyAge
            onMiss = .fail
        } else if bits.contains(.onlyLoadIfNotCached) {
            freshness = .acceptAnyAge
        } else if bits.contains(.askServerIfModified), !bits.contains(.askServerIfModifiedWhenStale)
        {
            freshness = .alwaysValidate
        }
        if bits.contains(.fallbackToCacheIfLoadFails) { fallback = .always() }
    }
}
