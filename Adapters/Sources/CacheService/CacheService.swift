public import CacheEngine
public import ServiceLifecycle

/// A cache as a service: it runs while the program does, and is shut down with it.
///
///     ServiceGroup(services: [CacheService(cache), server], logger: logger)
///
/// A group shuts its services down in the reverse order, so the cache stands before the server:
/// the server then ends its last requests with a cache that still answers.
public struct CacheService: Service {
    private let cache: HTTPCache

    /// Creates a service that runs `cache`.
    public init(_ cache: HTTPCache) { self.cache = cache }

    /// Runs the cache until the graceful shutdown or the task's cancellation.
    ///
    /// When this method returns, every accepted entry is written and the directory is released.
    public func run() async throws { await cancelWhenGracefulShutdown { await cache.run() } }
}
