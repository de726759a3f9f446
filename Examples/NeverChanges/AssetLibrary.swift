import CacheEngine

/// Loads assets that never change, each only once.
///
/// The policy accepts a stored response of any age, regardless of the origin's rules for storing
/// and freshness. Entries are pinned, so that other entries do not evict them.
struct AssetLibrary {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        var configuration = HTTPCache.Configuration.persistent(
            path: directory,
            capacity: .megabytes(64),
            policy: CachePolicy(
                freshness: .acceptAnyAge,
                respectsOriginDirectives: false,
                storageClass: .pinned
            )
        )
        configuration.hooks.willStore = { $0.status == 200 ? $0 : nil }
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// Returns the text of an asset, or `nil` if the origin answers with an error, which is not
    /// kept; the origin is not asked again for an asset that it has delivered.
    func asset(_ url: String) async throws -> String? {
        let response = try await cache.respond(to: CacheRequest(url: url))
        return response.status == 200 ? try await response.body.collect().text : nil
    }

    /// Writes all entries to disk and releases the directory.
    func close() async { await cache.shutDown() }
}
