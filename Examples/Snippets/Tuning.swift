import CacheEngine

enum Tuning {
    static func memory() -> Configuration {
        var memory = MemoryOptions.gigabytes(2)
        memory.eviction = .sizeAware(.requests)
        memory.entryShareMax = 0.02
        return Configuration(memory: memory, disk: .directory("/var/cache/app", .gigabytes(200)))
    }

    static func scrape(cache: HTTPCache) async -> String {
        let statistics = await cache.statistics
        print(statistics.hitRatio, statistics.memory.bytes, statistics.disk.entries)
        return statistics.prometheusText(prefix: "shop_cache")
    }

    static func events() -> Configuration {
        var configuration = Configuration()
        configuration.hooks.onEvent = { event in
            if case .originFailed(let error) = event { print("origin failed:", error) }
        }
        return configuration
    }

    static func pressure(cache: HTTPCache) {
        cache.setMemoryCapacity(.megabytes(64))
        cache.relieveMemoryPressure(keeping: 0.5)
    }
}
