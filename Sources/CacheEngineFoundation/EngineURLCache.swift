public import CacheEngine
public import Foundation

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A `URLCache` whose responses come from an `HTTPCache`.
///
/// Set on a `URLSessionConfiguration`, it makes all six request cache policies work on Linux, where
/// URLSession implements none of them. Each data task asks the cache first, and this cache answers
/// with the whole engine, loading included. On Apple's platforms it only stores: URLSession there
/// loads by itself, and decides which stored responses it uses.
///
/// ```swift
/// configuration.urlCache = try await EngineURLCache.open(.ephemeral())  // the one changed line
/// ```
///
/// The methods that look up, store and remove block the calling thread. Asynchronous code should
/// use `cache` itself.
///
/// `@unchecked Sendable`: its own state is constant. The inherited state of `URLCache`, which declares
/// itself `@unchecked Sendable`, is not used.
public final class EngineURLCache: URLCache, @unchecked Sendable {
    /// The cache that answers.
    public let cache: HTTPCache
    /// The largest response that is loaded for a task; URLSession loads larger ones itself.
    public let maximumDeliverySize: ByteCount
    /// The storage for the cookies of responses; `nil` drops them.
    let cookieStorage: HTTPCookieStorage?
    /// Fields added to every request that has no field of that name.
    let additionalFields: HeaderFields
    /// Whether tasks are answered here; if not, another part of the session loads them.
    private let answersTasks: Bool

    /// Creates a façade for `cache`, whose origin loads the responses.
    ///
    /// `additionalFields` must repeat the session configuration's `httpAdditionalHeaders`, because
    /// URLSession does not show them to its cache.
    public convenience init(
        _ cache: HTTPCache,
        maximumDeliverySize: ByteCount = .megabytes(64),
        cookieStorage: HTTPCookieStorage? = .shared,
        additionalFields: HeaderFields = HeaderFields()
    ) {
        self.init(
            cache,
            maximumDeliverySize: maximumDeliverySize,
            cookieStorage: cookieStorage,
            additionalFields: additionalFields,
            answersTasks: true
        )
    }

    /// Creates a façade for the methods that look up, store and remove; it answers no task.
    convenience init(directAccessTo cache: HTTPCache, additionalFields: HeaderFields) {
        self.init(
            cache,
            maximumDeliverySize: .megabytes(64),
            cookieStorage: nil,
            additionalFields: additionalFields,
            answersTasks: false
        )
    }

    private init(
        _ cache: HTTPCache,
        maximumDeliverySize: ByteCount,
        cookieStorage: HTTPCookieStorage?,
        additionalFields: HeaderFields,
        answersTasks: Bool
    ) {
        self.cache = cache
        self.answersTasks = answersTasks
        self.maximumDeliverySize = maximumDeliverySize
        self.cookieStorage = cookieStorage
        self.additionalFields = additionalFields
        // The inherited store stays empty, but it needs a directory that exists or can be created.
        super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: NSTemporaryDirectory())
    }

    /// Opens a new `HTTPCache` and wraps it.
    public static func open(
        _ configuration: HTTPCache.Configuration,
        origin: any Origin = URLSessionOrigin()
    ) async throws -> EngineURLCache {
        EngineURLCache(try await HTTPCache(configuration: configuration, origin: origin))
    }

    /// The cache's request, with the session's additional fields; `nil` without a URL.
    func cacheRequest(_ request: URLRequest) -> CacheRequest? {
        guard var asked = CacheRequest(request) else { return nil }
        for (name, value) in additionalFields.pairs where !asked.fields.contains(name) {
            asked.fields.append(name, value)
        }
        return asked
    }

    // MARK: - Direct access

    /// Returns the stored response for the request, of any age, in the variant that it selects.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard let asked = cacheRequest(request), let url = request.url else { return nil }
        let inMemory = cache.immediateResponse(to: asked, policy: .returnCacheDataDontLoad)
        if let inMemory, let chunk = inMemory.body.availableChunk {
            return inMemory.urlResponse(url: url).map { inMemory.cachedURLResponse($0, chunk) }
        }
        return BlockingCall.wait { [cache, maximumDeliverySize] in
            guard let stored = try? await cache.storedResponse(for: asked),
                let cached = try? await stored.cachedURLResponse(
                    url: url,
                    upTo: maximumDeliverySize
                )
            else { return Kept(response: nil) }
            return Kept(response: cached)
        }.response
    }

    /// Stores a response for the request, as the response's storage policy says, in the storage class
    /// of the cache (`CachingRules.storageClass`).
    ///
    /// `HTTPCache.store(_:for:options:)` says which requests and statuses are stored. The user info is
    /// kept if it is a property list, also in memory: one with any other value, such as a URL, is
    /// left out whole.
    public override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse,
        for request: URLRequest
    ) {
        guard let asked = cacheRequest(request),
            var options = HTTPCache.ManualStoreOptions(cachedResponse)
        else { return }
        options.storageClass = cache.configuration.caching.storageClass
        let response = CacheResponse(cachedResponse)
        BlockingCall.wait { [cache, options] in
            _ = try? await cache.store(response, for: asked, options: options)
        }
    }

    /// Removes every stored variant of the response for the request.
    public override func removeCachedResponse(for request: URLRequest) {
        guard let asked = cacheRequest(request) else { return }
        BlockingCall.wait { [cache] in _ = try? await cache.remove(asked) }
    }

    /// Removes all stored responses.
    public override func removeAllCachedResponses() {
        BlockingCall.wait { [cache] in _ = try? await cache.removeAll() }
    }

    /// Removes the responses stored at or after `date`.
    public override func removeCachedResponses(since date: Date) {
        let seconds = Self.seconds(date)
        BlockingCall.wait { [cache] in
            _ = try? await cache.removeAll(in: .storedAfter(unixSeconds: seconds))
        }
    }

    /// Removes the responses stored before `date`.
    public func removeCachedResponses(before date: Date) {
        let seconds = Self.seconds(date)
        BlockingCall.wait { [cache] in
            _ = try? await cache.removeAll(in: .storedBefore(unixSeconds: seconds))
        }
    }

    private static func seconds(_ date: Date) -> Int64 {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        // Every calendar date lies within these bounds. What is no time is before all of them.
        return seconds.isNaN ? -1_000_000_000_000_000 : Int64(min(max(seconds, -1e15), 1e15))
    }

    // MARK: - For URLSession

    /// Answers a task: on Linux by the engine, with look-up, collapsing, loading and storing, and on
    /// Apple's platforms with the stored response.
    public override func getCachedResponse(
        for dataTask: URLSessionDataTask,
        completionHandler: @Sendable @escaping (CachedURLResponse?) -> Void
    ) {
        #if canImport(FoundationNetworking)
            guard answersTasks else { return completionHandler(nil) }
            answer(dataTask, completionHandler: completionHandler)
        #else
            completionHandler(dataTask.currentRequest.flatMap { cachedResponse(for: $0) })
        #endif
    }

    /// Stores a response for the task's request.
    public override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse,
        for dataTask: URLSessionDataTask
    ) {
        guard let request = dataTask.currentRequest else { return }
        storeCachedResponse(cachedResponse, for: request)
    }

    /// Removes every stored variant of the response for the task's request.
    public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
        guard let request = dataTask.currentRequest else { return }
        removeCachedResponse(for: request)
    }

    // MARK: - Capacity

    /// The maximum memory use in bytes.
    ///
    /// Setting 0 frees memory and does not change the capacity: system components set 0 under
    /// memory pressure, which must not disable the cache. To change the capacity to 0, use
    /// `cache.setMemoryCapacity`.
    public override var memoryCapacity: Int {
        get { cache.memoryCapacityBytes }
        set {
            guard newValue > 0 else {
                return BlockingCall.wait { [cache] in await cache.relieveMemoryPressure() }
            }
            BlockingCall.wait { [cache] in await cache.setMemoryCapacity(.bytes(newValue)) }
        }
    }

    /// The maximum disk use in bytes; setting 0 has no effect.
    public override var diskCapacity: Int {
        get { cache.diskCapacityBytes }
        set {
            guard newValue > 0 else { return }
            BlockingCall.wait { [cache] in try? await cache.setDiskCapacity(.bytes(newValue)) }
        }
    }

    /// The memory in use, in bytes.
    public override var currentMemoryUsage: Int {
        BlockingCall.wait { [cache] in await cache.statistics.memory.bytes }
    }

    /// The disk space in use, in bytes.
    public override var currentDiskUsage: Int {
        BlockingCall.wait { [cache] in await cache.statistics.disk.bytes }
    }
}

/// Carries a response between two threads.
///
/// `@unchecked Sendable`: the response is made on one thread, never changed, and handed over once.
private struct Kept: @unchecked Sendable {
    let response: CachedURLResponse?
}
