import CacheEngine

enum Stale {
    static func offline(cache: HTTPCache, request: CacheRequest) async throws {
        let policy = CachePolicy.standard.with { $0.fallback = .always() }
        let response = try await cache.respond(to: request, policy: policy)
        if response.info.isStale { print("from", response.info.storedAtSeconds ?? 0) }
    }

    static func behind(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request, policy: .cachedThenRefresh)
        print(response.info.source)
    }

    static func cacheOnly(cache: HTTPCache, request: CacheRequest) async throws {
        do {
            _ = try await cache.respond(to: request, policy: .cacheOnly)
        } catch let error as CacheError where error.code == .notCached {
            print("nothing stored")
        }
    }

    static func bits(cache: HTTPCache, request: CacheRequest) async throws {
        let bits: DownloadCachePolicy = [.askServerIfModified, .fallbackToCacheIfLoadFails]
        _ = try await cache.respond(to: request, policy: bits.cachePolicy)
    }

    static func windows() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.caching.staleWhileRevalidate = .seconds(30)
        configuration.caching.staleIfError = .seconds(3_600)
        configuration.caching.refreshAheadShare = 0.9
        return configuration
    }

    static func softPurge(cache: HTTPCache, request: CacheRequest) async throws {
        try await cache.markStale(tagged: "user:42")
        try await cache.markStale(request)
    }
}
