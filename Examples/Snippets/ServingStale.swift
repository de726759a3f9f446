import CacheEngine

enum Stale {
    static func offline(cache: HTTPCache, request: CacheRequest) async throws {
        let policy = CachePolicy.useProtocolCachePolicy.with { $0.fallback = .always() }
        let response = try await cache.respond(to: request, policy: policy)
        if response.info.isStale { print("from", response.info.storedAtSeconds ?? 0) }
    }

    static func behind(cache: HTTPCache, request: CacheRequest) async throws {
        let response = try await cache.respond(to: request, policy: .cachedThenRefresh)
        print(response.info.source)
    }

    static func onlyCached(cache: HTTPCache, request: CacheRequest) async throws {
        do {
            _ = try await cache.respond(to: request, policy: .onlyCached)
        } catch let error as CacheError where error.code == .notCached {
            print("nothing stored")
        }
    }

    static func bits(cache: HTTPCache, request: CacheRequest) async throws {
        let bits: DownloadCachePolicy = [.askServerIfModified, .fallbackToCacheIfLoadFails]
        _ = try await cache.respond(to: request, policy: CachePolicy(bits))
    }

    static func windows() -> Configuration {
        var configuration = Configuration()
        configuration.storing.staleWhileRevalidateSeconds = 30
        configuration.storing.staleIfErrorSeconds = 3_600
        configuration.storing.refreshAheadShare = 0.9
        return configuration
    }

    static func softPurge(cache: HTTPCache, request: CacheRequest) async throws {
        cache.makeStale(tag: "user:42")
        try await cache.makeStale(request)
    }
}
