import CacheEngine
import CacheEngineRedis

enum FleetSnippets {
    static func open(
        configuration: HTTPCache.Configuration,
        origin: any Origin
    ) async throws -> HTTPCache {
        let cache = try await HTTPCache(
            configuration: configuration,
            origin: origin,
            fleet: .redis("redis://10.0.0.5:6379/shop")
        )
        return cache
    }

    static func purge(cache: HTTPCache) async throws {
        let report = try await cache.purge(.tag("user:42"))
        if let receipt = report.receipt, !receipt.isReplicated {
            print("no replica has confirmed the purge yet")
        }
    }

    static func purgeAndWait(cache: HTTPCache) async throws {
        let report = try await cache.purge(.tag("prices"), waitingFor: .fleet)
        if let reach = report.receipt?.reach, !reach.isComplete {
            print("\(reach.applied) of \(reach.machines) machines have applied the purge")
        }
    }

    static func strict() throws -> Fleet {
        var options = RedisFleetOptions()
        options.maximumLag = .seconds(30)
        options.whenCutOff = .revalidate
        return try .redis("redis://10.0.0.5:6379/shop", options: options)
    }
}
