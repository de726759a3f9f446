import CacheEngine

/// Reads a document that must be current, and transfers it only if it has changed.
///
/// Every read validates the stored response with the origin. An unchanged document costs one small
/// exchange without a body.
struct ChangeWatcher {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        let configuration = HTTPCache.Configuration.persistent(
            path: directory,
            capacity: .megabytes(64),
            policy: .revalidate
        )
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// Returns the current text, and whether its body was transferred.
    func read(_ url: String) async throws -> (text: String, isChanged: Bool) {
        let response = try await cache.respond(to: CacheRequest(url: url))
        return (try await response.body.collect().text, !response.info.didUseCachedResponse)
    }

    /// Writes all entries to disk and releases the directory.
    func close() async { await cache.shutDown() }
}
