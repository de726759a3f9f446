import CacheEngine

/// Reads pages, and goes on reading them when the network is gone.
///
/// The recipe: a private cache on disk whose policy lets a stored answer of any age stand in for a
/// failed load, and that keeps redirects too, so that a chain of them can be followed offline.
struct OfflineReader {
    private let cache: HTTPCache

    init(directory: String, origin: any Origin) async throws {
        var configuration = Configuration(
            memory: .megabytes(8),
            disk: .directory(directory, .megabytes(64)),
            mode: .private,
            policy: CachePolicy(fallback: .always())
        )
        configuration.storing.redirects = .storeAll
        cache = try await HTTPCache(configuration: configuration, origin: origin)
    }

    /// The text of a page, and whether it may be out of date.
    func read(_ url: String) async throws -> (text: String, isStale: Bool) {
        let response = try await cache.respond(to: CacheRequest(url: url))
        return (try await response.body.collect().text, response.info.isStale)
    }

    /// What is kept of a page, without asking anyone; nil for one that was never read.
    func readKept(_ url: String) async throws -> String? {
        try await cache.storedResponse(for: CacheRequest(url: url))?.body.collect().text
    }

    /// Writes out what is kept; the directory is free afterwards.
    func close() async { await cache.shutDown() }
}
