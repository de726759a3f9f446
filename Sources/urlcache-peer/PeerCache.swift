import CacheEngine
import CacheEngineFoundation
import Foundation

#if canImport(FoundationNetworking)
    import FoundationNetworking
#endif

/// One of the two measured caches, in memory or on disk.
struct PeerCache {
    let cache: URLCache
    let description: String

    /// The capacity of either tier, large enough to avoid evictions.
    private static let capacityBytes = 1 << 30

    /// Opens a cache; with a directory, memory is disabled, so that every hit reads the disk.
    static func make(isEngine: Bool, directory: String?) async throws -> PeerCache {
        let place = directory == nil ? "memory" : "disk"
        if isEngine {
            var configuration = HTTPCache.Configuration(memory: .gigabytes(1), mode: .private)
            if let directory {
                configuration.memory = .disabled
                configuration.backing = .disk(
                    path: directory + "/engine",
                    capacity: .gigabytes(1)
                )
            }
            let cache = try await EngineURLCache.open(configuration)
            return PeerCache(cache: cache, description: "EngineURLCache, 1 GiB, \(place)")
        }
        let cache = URLCache(
            memoryCapacity: directory == nil ? capacityBytes : 0,
            diskCapacity: directory == nil ? 0 : capacityBytes,
            diskPath: directory ?? NSTemporaryDirectory()
        )
        return PeerCache(cache: cache, description: "URLCache of Foundation, 1 GiB, \(place)")
    }

    func store(_ body: Data, key: String) {
        guard let url = URL(string: key),
            let head = HTTPURLResponse(
                url: url,
                statusCode: 200,
                httpVersion: "HTTP/1.1",
                headerFields: ["Content-Type": "image/png", "Cache-Control": "max-age=86400"]
            )
        else { return }
        let answer = CachedURLResponse(response: head, data: body)
        cache.storeCachedResponse(answer, for: URLRequest(url: url))
    }

    /// Returns the first byte of the body stored for the request.
    func firstByte(_ request: URLRequest) -> UInt8? {
        cache.cachedResponse(for: request)?.data.first
    }
}
