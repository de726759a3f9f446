import CacheEngine

enum Tuning {
    static func memory() -> HTTPCache.Configuration {
        var memory = MemoryOptions.gigabytes(2)
        memory.eviction = .sizeAware(.requests)
        memory.maximumEntryShare = 0.02
        return HTTPCache.Configuration(
            memory: memory,
            backing: .disk(path: "/var/cache/app", capacity: .gigabytes(200))
        )
    }

    static func scrape(cache: HTTPCache) async -> String {
        let statistics = await cache.statistics
        print(statistics.hitRatio, statistics.memory.bytes, statistics.disk.entries)
        return statistics.prometheusText(prefix: "shop_cache")
    }

    static func events() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
        configuration.hooks.onEvent = { event in
            switch event {
            case .answered(let answer):
                let url = answer.request.urlWithoutSecrets
                print(url, answer.status, answer.source, answer.duration)
            case .originFailed(let error, let request):
                print(request.urlWithoutSecrets, "failed at the origin:", error)
            default: break
            }
        }
        return configuration
    }

    static func pressure(cache: HTTPCache) async {
        await cache.setMemoryCapacity(.megabytes(64))
        await cache.relieveMemoryPressure(keeping: 0.5)
    }
}
