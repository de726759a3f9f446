import CacheEngine

enum Disk {
    static func synced() -> Configuration {
        var disk = DiskOptions.directory("/var/cache/app", .gigabytes(20))
        disk.durability = .synced
        disk.foreignDirectory = .startEmpty
        return Configuration(memory: .megabytes(256), disk: disk)
    }

    static func memoryOnly() -> Configuration {
        var configuration = Configuration()
        configuration.hooks.willStore = { proposal in
            proposal.request.url.hasPrefix("https:") ? proposal.inMemoryOnly : proposal
        }
        return configuration
    }

    static func writtenOut(cache: HTTPCache) async throws {
        try await cache.flush()
        try await cache.setDiskCapacity(.gigabytes(5))
    }

    static func asFile(cache: HTTPCache, request: CacheRequest) async throws {
        _ = try await cache.download(request, to: "/tmp/movie.mp4")
        try await cache.withBodyFile(for: request) { path, response in
            print(path, response.status)
        }
    }
}
