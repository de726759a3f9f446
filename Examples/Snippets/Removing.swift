import CacheEngine
import Foundation

enum Removing {
    static func several(cache: HTTPCache, request: CacheRequest) async throws {
        let report = try await cache.purge([.tag("user:42"), .tag("prices"), .request(request)])
        print(report.entries, "entries were removed")
    }

    static func old(cache: HTTPCache) async throws {
        let now = Int64(Date().timeIntervalSince1970)
        try await cache.removeAll(in: .storedBefore(unixSeconds: now - 3_600))
    }

    static func recent(cache: HTTPCache) async throws {
        let now = Int64(Date().timeIntervalSince1970)
        try await cache.removeAll(in: .storedAfter(unixSeconds: now - 3_600))
    }
}
