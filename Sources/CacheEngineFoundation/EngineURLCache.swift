public import CacheEngine
public import Foundation
internal import Synchronization

#if canImport(FoundationNetworking)
    public import FoundationNetworking
#endif

/// A `URLCache` whose answers come from an `HTTPCache`.
///
/// Set on a `URLSessionConfiguration` it makes all six request cache policies true on Linux, where
/// URLSession knows none of them: each data task asks the cache first, and this cache answers with
/// the whole engine behind it, the load included.
///
/// ```swift
/// configuration.urlCache = try await EngineURLCache.open(.ephemeral())  // the one changed line
/// ```
///
/// The methods that look up, store and remove block the calling thread; code that can wait should
/// use `cache` itself.
///
/// `@unchecked Sendable`: its own state is constant or behind a mutex, and what it inherits from
/// `URLCache`, which declares itself so, is not used.
public final class EngineURLCache: URLCache, @unchecked Sendable {
    /// The cache that answers.
    public let cache: HTTPCache
    /// The largest answer taken out of the network for a task; larger ones URLSession loads itself.
    public let deliveryBytesMax: ByteCount
    /// Where cookies of answers go, or nil for nowhere.
    let cookieStorage: HTTPCookieStorage?
    /// Fields that every load carries unless the request brings its own.
    let additionalFields: HeaderFields
    private let capacities: Mutex<Capacities>

    private struct Capacities: Sendable {
        var memoryBytes: Int
        var diskBytes: Int
    }

    /// A façade in front of `cache`, whose origin does the loading.
    ///
    /// `additionalFields` repeats the session configuration's `httpAdditionalHeaders`, which
    /// URLSession does not show to its cache.
    public init(
        _ cache: HTTPCache,
        deliveryBytesMax: ByteCount = .megabytes(64),
        cookieStorage: HTTPCookieStorage? = .shared,
        additionalFields: HeaderFields = HeaderFields()
    ) {
        self.cache = cache
        self.deliveryBytesMax = deliveryBytesMax
        self.cookieStorage = cookieStorage
        self.additionalFields = additionalFields
        let configuration = cache.configuration
        capacities = Mutex(
            Capacities(
                memoryBytes: configuration.memory.capacity.bytes,
                diskBytes: configuration.disk.capacityBytes
            )
        )
        // The inherited store stays empty; its directory must exist or is made.
        super.init(memoryCapacity: 0, diskCapacity: 0, diskPath: NSTemporaryDirectory())
    }

    /// Opens a cache of its own.
    public static func open(
        _ configuration: Configuration,
        origin: any Origin = URLSessionOrigin()
    ) async throws -> EngineURLCache {
        EngineURLCache(try await HTTPCache(configuration: configuration, origin: origin))
    }

    // MARK: - By hand

    /// What is stored for the request, of any age, in the variant it selects.
    public override func cachedResponse(for request: URLRequest) -> CachedURLResponse? {
        guard let asked = CacheRequest(request), let url = request.url else { return nil }
        let inMemory = cache.cachedResponse(for: asked, policy: .returnCacheDataDontLoad)
        if let inMemory, let chunk = inMemory.body.availableChunk {
            return inMemory.urlResponse(url: url).map { inMemory.cachedURLResponse($0, chunk) }
        }
        return BlockingCall.wait { [cache, deliveryBytesMax] in
            guard let stored = try? await cache.storedResponse(for: asked),
                let cached = try? await stored.cachedURLResponse(url: url, upTo: deliveryBytesMax)
            else { return Kept(response: nil) }
            return Kept(response: cached)
        }.response
    }

    /// Stores an answer under the request, as its storage policy says.
    public override func storeCachedResponse(
        _ cachedResponse: CachedURLResponse,
        for request: URLRequest
    ) {
        guard let asked = CacheRequest(request) else { return }
        var options = HTTPCache.StoreOptions()
        switch cachedResponse.storagePolicy {
        case .allowed: break
        case .allowedInMemoryOnly: options.place = .memoryOnly
        case .notAllowed: return
        @unknown default: return
        }
        options.userInfo = UserInfo.encode(cachedResponse.userInfo)
        let response = CacheResponse(cachedResponse)
        BlockingCall.wait { [cache, options] in
            _ = try? await cache.store(response, for: asked, options: options)
        }
    }

    /// Removes what is stored for the request, all variants of it.
    public override func removeCachedResponse(for request: URLRequest) {
        guard let asked = CacheRequest(request) else { return }
        BlockingCall.wait { [cache] in _ = try? await cache.remove(asked) }
    }

    /// Removes everything.
    public override func removeAllCachedResponses() {
        BlockingCall.wait { [cache] in _ = try? await cache.removeAll() }
    }

    /// Removes what was stored at that moment or later.
    public override func removeCachedResponses(since date: Date) {
        let seconds = Self.seconds(date)
        BlockingCall.wait { [cache] in
            _ = try? await cache.removeAll(in: .storedAfter(seconds: seconds))
        }
    }

    /// Removes what was stored before that moment.
    public func removeCachedResponses(before date: Date) {
        let seconds = Self.seconds(date)
        BlockingCall.wait { [cache] in
            _ = try? await cache.removeAll(in: .storedBefore(seconds: seconds))
        }
    }

    private static func seconds(_ date: Date) -> Int64 {
        let seconds = date.timeIntervalSince1970.rounded(.down)
        // The bounds are those that every date of a calendar lies within.
        return Int64(min(max(seconds, -1e15), 1e15))
    }

    // MARK: - For URLSession

    #if canImport(FoundationNetworking)
        /// Answers a task with the engine: look-up, collapse, load and store.
        public override func getCachedResponse(
            for dataTask: URLSessionDataTask,
            completionHandler: @Sendable @escaping (CachedURLResponse?) -> Void
        ) {
            answer(dataTask, completionHandler: completionHandler)
        }

        /// Stores an answer by hand, under the task's request.
        public override func storeCachedResponse(
            _ cachedResponse: CachedURLResponse,
            for dataTask: URLSessionDataTask
        ) {
            guard let request = dataTask.currentRequest else { return }
            storeCachedResponse(cachedResponse, for: request)
        }

        /// Removes what is stored for the task's request.
        public override func removeCachedResponse(for dataTask: URLSessionDataTask) {
            guard let request = dataTask.currentRequest else { return }
            removeCachedResponse(for: request)
        }
    #endif

    // MARK: - Room

    /// Bytes of memory that may be in use.
    ///
    /// Setting 0 frees memory and changes nothing else: system components set it under memory
    /// pressure, and must not disable the cache. Its owner uses `cache.setMemoryCapacity`.
    public override var memoryCapacity: Int {
        get { capacities.withLock { $0.memoryBytes } }
        set {
            guard newValue > 0 else { return cache.relieveMemoryPressure() }
            capacities.withLock { $0.memoryBytes = newValue }
            cache.setMemoryCapacity(.bytes(newValue))
        }
    }

    /// Bytes of disk that may be in use; setting 0 changes nothing.
    public override var diskCapacity: Int {
        get { capacities.withLock { $0.diskBytes } }
        set {
            guard newValue > 0 else { return }
            let isChanged = BlockingCall.wait { [cache] in
                (try? await cache.setDiskCapacity(.bytes(newValue))) != nil
            }
            if isChanged { capacities.withLock { $0.diskBytes = newValue } }
        }
    }

    /// Bytes of memory in use.
    public override var currentMemoryUsage: Int {
        BlockingCall.wait { [cache] in await cache.statistics.memory.bytes }
    }

    /// Bytes of disk in use.
    public override var currentDiskUsage: Int {
        BlockingCall.wait { [cache] in await cache.statistics.disk.bytes }
    }
}

/// An answer on its way between two threads.
///
/// `@unchecked Sendable`: the answer is made on one thread, never changed, and handed over once.
private struct Kept: @unchecked Sendable {
    let response: CachedURLResponse?
}

extension DiskOptions {
    fileprivate var capacityBytes: Int {
        switch kind {
        case .directory(_, let capacity): capacity.bytes
        case .disabled, .custom: 0
        }
    }
}
