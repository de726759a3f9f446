import CacheEngine

enum Collapse {
    static func limits() -> Configuration {
        var configuration = Configuration()
        configuration.flights.waitSecondsMax = 5
        configuration.flights.attemptsMax = 2
        configuration.flights.abandoned = .cancel
        return configuration
    }

    static func alone() -> CacheRequest {
        var request = CacheRequest(url: "https://example.com/")
        request.options.collapsing = .alone
        return request
    }

    static func gate() -> Configuration {
        var configuration = Configuration()
        configuration.flights.originRequestsPerKeyMax = 8
        return configuration
    }

    static func looking(cache: HTTPCache) async {
        let statistics = await cache.statistics
        print(statistics.flights, statistics.waiters, statistics.escapes)
    }
}
