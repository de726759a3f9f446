import CacheEngine

enum Disk {
    static func synced() -> HTTPCache.Configuration {
        var disk = BackingStore.disk(path: "/var/cache/app", capacity: .gigabytes(20))
        disk.durability = .onRemoval
        disk.foreignDirectory = .startEmpty
        return HTTPCache.Configuration(memory: .megabytes(256), backing: disk)
    }

    static func memoryOnly() -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration()
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
        _ = try await cache.download(request, to: "/tmp/movie.mp4", resuming: true) { progress in
            print(progress.receivedBytes, progress.totalBytes ?? 0)
        }
        try await cache.withBodyFile(for: request) { path, response in
            print(path, response.status)
        }
    }
}
