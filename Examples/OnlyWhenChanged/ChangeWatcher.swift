import CacheEngine

/// Reads a document that must never be out of date, and transfers it only when it has changed.
///
/// The recipe: every read asks the origin with the validators of what is stored. An unchanged
/// document costs one small exchange and no body.
struct ChangeWatcher {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        let configuration = Configuration(
            memory: .megabytes(8),
            disk: .directory(directory, .megabytes(64)),
            mode: .private,
            policy: .reloadRevalidatingCacheData
        )
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// The text as it is now, and whether it had to be transferred.
    func read(_ url: String) async throws -> (text: String, isChanged: Bool) {
        let response = try await cache.respond(to: CacheRequest(url: url))
        return (try await response.body.collect().text, !response.info.didUseCachedResponse)
    }

    /// Writes out what is kept; the directory is free afterwards.
    func close() async { await cache.shutDown() }
}
