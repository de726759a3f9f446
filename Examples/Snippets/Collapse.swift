import CacheEngine

enum Collapse {
    static func limits() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.collapsing.maximumWait = .seconds(5)
        configuration.collapsing.maximumAttempts = 2
        configuration.collapsing.abandoned = .cancel
        return configuration
    }

    static func alone() -> CacheRequest {
        var request = CacheRequest(url: "https://example.com/")
        request.options.collapsing = .alone
        return request
    }

    static func gate() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.collapsing.maximumOriginRequestsPerKey = 8
        return configuration
    }

    static func looking(cache: HTTPCache) async {
        let statistics = await cache.statistics
        print(statistics.flights, statistics.waiters, statistics.escapes)
    }
}
