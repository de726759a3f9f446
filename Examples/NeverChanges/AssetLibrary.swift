import CacheEngine

/// Loads things that never change, each of them once in its life.
///
/// The recipe: any age will do, whatever the origin says about storing and freshness, and what is
/// stored is pinned, so that passing traffic does not push it out.
struct AssetLibrary {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        let configuration = Configuration(
            memory: .megabytes(8),
            disk: .directory(directory, .megabytes(64)),
            mode: .private,
            policy: CachePolicy(
                freshness: .acceptAnyAge,
                respectsOriginDirectives: false,
                storageClass: .pinned
            )
        )
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// The text of an asset; asks the origin only the first time.
    func asset(_ url: String) async throws -> String {
        try await cache.respond(to: CacheRequest(url: url)).body.collect().text
    }

    /// Writes out what is kept; the directory is free afterwards.
    func close() async { await cache.shutDown() }
}
