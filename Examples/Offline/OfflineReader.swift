import CacheEngine

/// Reads pages, also after the network has become unreachable.
///
/// The recipe is a private cache on disk. Its policy uses a stored response of any age if a load
/// fails. Redirects are stored too, so that a chain of them can be followed offline.
struct OfflineReader {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        var configuration = HTTPCache.Configuration.persistent(
            path: directory,
            capacity: .megabytes(64),
            policy: CachePolicy(fallback: .always())
        )
        configuration.caching.redirects = .storeAll
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// Returns the text of a page, or of the error that its origin answers with, and whether it may be
    /// out of date.
    func read(_ url: String) async throws -> (text: String, isStale: Bool) {
        let response = try await cache.respond(to: CacheRequest(url: url))
        return (try await response.body.collect().text, response.info.isStale)
    }

    /// Returns the stored text without a request to the origin, or `nil` if it is not stored.
    func readKept(_ url: String) async throws -> String? {
        try await cache.storedResponse(for: CacheRequest(url: url))?.body.collect().text
    }

    /// Writes all entries to disk and releases the directory.
    func close() async { await cache.shutDown() }
}
