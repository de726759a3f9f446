/// The policy bits of the classic download caches (ASIHTTPRequest).
///
/// Their precedence: `doNotReadFromCache` overrides all others; then `dontLoad`; then, if a
/// response is stored, `onlyLoadIfNotCached` overrides the two bits that ask the origin, and asking
/// when stale overrides asking always. `fallbackToCacheIfLoadFails` applies after a failure.
public struct DownloadCachePolicy: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: Int

    /// Creates the policy with those bits.
    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Stored responses are not used, not even after a failure.
    public static let doNotReadFromCache = Self(rawValue: 1)
    /// The store is not changed.
    public static let doNotWriteToCache = Self(rawValue: 2)
    /// The origin is asked if the stored response is stale; this is also the rule without any bit.
    public static let askServerIfModifiedWhenStale = Self(rawValue: 4)
    /// The origin is always asked.
    public static let askServerIfModified = Self(rawValue: 8)
    /// A stored response of any age is used without asking the origin.
    public static let onlyLoadIfNotCached = Self(rawValue: 16)
    /// The origin is never asked.
    public static let dontLoad = Self(rawValue: 32)
    /// A stored response of any age is used if the fetch fails.
    public static let fallbackToCacheIfLoadFails = Self(rawValue: 64)
}

extension DownloadCachePolicy {
    /// The policy that the bits describe; `nil`, for the cache's default, if no bit is set.
    ///
    /// For `RequestOptions.policy`, and for the methods that take a policy.
    public var cachePolicy: CachePolicy? { isEmpty ? nil : CachePolicy(self) }
}

extension CachePolicy {
    /// Creates the policy that the download-cache bits describe; without a bit it is `standard`.
    ///
    /// `DownloadCachePolicy.cachePolicy` leaves the cache's default in force for no bit, as the
    /// classic caches do.
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
