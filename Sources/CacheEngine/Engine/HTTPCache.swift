/// An HTTP cache, which answers requests from stored responses and asks the origin if it must.
///
/// ```swift
/// let cache = try await HTTPCache(
///     configuration: HTTPCache.Configuration(memory: .megabytes(256), mode: .shared),
///     origin: origin
/// )
/// let response = try await cache.respond(to: CacheRequest(url: "https://example.com/"))
/// ```
///
/// A cache is ready once it is created; `run()` adds the periodic work of a long-lived one, and
/// `shutDown()` ends it. Every method may be called from any task.
public final class HTTPCache: Sendable {
    /// The configuration of this cache.
    public let configuration: HTTPCache.Configuration
    let services: Services

    /// Opens a cache in front of `origin`.
    ///
    /// If `fleet` is given, purges reach all its machines. The purges that this machine has missed
    /// are applied before the first answer, unless the log cannot be read within two seconds.
    ///
    /// - Throws: `CacheError` if the directory is in use, unusable or holds other files, or if the
    ///   configuration contradicts itself.
    public init(
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(),
        origin: any Origin,
        fleet: Fleet? = nil
    ) async throws {
        self.configuration = configuration
        let relay = try fleet?.makeRelay()
        services = try await Services(configuration, origin, relay)
        await relay?.start(PurgeInbox(services))
    }

    // MARK: Answering

    /// Returns the response to a request, under `policy`, its own policy, or the cache's.
    ///
    /// A fresh response in memory, or in a file that is in the page cache, is returned without
    /// suspending, and without leaving the caller's actor.
    ///
    /// - Throws: `CacheError`; its code is `.notCached` if nothing is stored and the policy forbids
    ///   asking the origin.
    nonisolated(nonsending) public func respond(
        to request: CacheRequest,
        policy: CachePolicy? = nil
    ) async throws -> CacheResponse {
        let fast = FastHit(services).response(to: request, policy, reach: .pageCache)
        if let fast { return fast }
        return try await RequestRunner(services, request, policy).response()
    }

    /// Answers a request as `respond` does, if that needs no waiting.
    ///
    /// Calls `read` with a usual hit in memory with a body of up to `bodyBytesMax`, under the terms
    /// of `withImmediateResponse`; returns any other response.
    package func immediateAnswer(
        to request: CacheRequest,
        bodyBytesMax: Int,
        _ read: (borrowing BorrowedResponse) -> Void
    ) -> ImmediateAnswer {
        FastHit(services)
            .lend(to: request, nil, bodyBytesMax: bodyBytesMax, reach: .pageCache, read)
    }

    /// Begins to answer a request that `immediateAnswer` could not answer.
    ///
    /// `completion` is called once, by any thread, perhaps before this method returns.
    package func begin(
        _ request: consuming CacheRequest,
        _ answer: PendingAnswer,
        _ completion: @escaping PendingAnswer.Completion
    ) {
        do {
            try RequestRunner(services, request, nil).begin(answer, completion)
        } catch { completion(.failure(error)) }
    }

    /// Returns the response if it is in memory and needs no work, or `nil` if the request would
    /// wait.
    public func immediateResponse(
        to request: CacheRequest,
        policy: CachePolicy? = nil
    ) -> CacheResponse? { FastHit(services).response(to: request, policy) }

    /// Calls `read` with the response if it is in memory and needs no work; returns `nil` without
    /// calling it if the request would wait.
    ///
    /// The response is that of `immediateResponse(to:policy:)`, read where it is stored. Threads
    /// that read one small response, of up to 64 KiB, write to no common memory, so their
    /// throughput grows with their number. Use this method to copy a response to a socket's
    /// buffer, and `BorrowedResponse.response` for one that is too large to be copied.
    ///
    /// `read` must be short: while it runs, no cache of the process releases the memory of removed
    /// and replaced entries, and a thread that stores or removes may wait for it. It must not wait:
    /// neither for a lock or I/O, nor for a task, because all threads of the pool may be among
    /// those that wait for it.
    ///
    /// - Returns: The result of `read`.
    /// - Throws: The error of `read`.
    @inlinable
    public func withImmediateResponse<Value, Failure: Error>(
        to request: CacheRequest,
        policy: CachePolicy? = nil,
        _ read: (borrowing BorrowedResponse) throws(Failure) -> Value
    ) throws(Failure) -> Value? {
        var result: Result<Value, Failure>?
        readImmediateResponse(to: request, policy) { response in
            do throws(Failure) {
                result = .success(try read(response))
            } catch {
                result = .failure(error)
            }
        }
        return try result?.get()
    }

    /// Calls `read` with the response, unless the request would wait.
    ///
    /// Not generic, so that other modules call the code that was specialised here.
    @usableFromInline
    func readImmediateResponse(
        to request: CacheRequest,
        _ policy: CachePolicy?,
        _ read: (borrowing BorrowedResponse) -> Void
    ) {
        let answer = FastHit(services).lend(to: request, policy, read)
        if case .response(let response) = answer { read(BorrowedResponse(response)) }
    }

    /// Fetches the responses that are not stored or not fresh, at most `concurrency` at a time.
    ///
    /// The bodies are read to their end and dropped.
    ///
    /// - Returns: The number of requests that the store can answer now.
    @discardableResult
    public func prefetch(_ requests: [CacheRequest], concurrency: Int = 4) async -> Int {
        await Prefetch(services: services).load(requests, concurrency: concurrency)
    }

    // MARK: Life cycle

    /// Does the periodic work of a long-lived cache until the task is cancelled or the cache is shut
    /// down.
    ///
    /// If the task is cancelled, this method shuts the cache down before it returns.
    public func run() async { await LifeCycle(services: services).run() }

    /// Ends all work, writes out every accepted entry, and releases the directory.
    ///
    /// Requests that wait fail with `.shutDown`. Work that does not end within
    /// `HTTPCache.Configuration.maximumShutDownTime` is no longer waited for. A disk that hangs then
    /// keeps its directory locked until it goes on.
    public func shutDown() async { await LifeCycle(services: services).shutDown() }

    /// Waits until the background work that runs now has ended.
    public func waitUntilIdle() async { await services.supervisor.waitUntilIdle() }

    // MARK: Observing

    /// The counts of this cache since it was created, and its contents.
    public var statistics: HTTPCache.Statistics {
        get async {
            let tiers = services.tiers
            var statistics = services.recorder.snapshot
            statistics.memory = tiers.memory.usage()
            statistics.disk = await tiers.backing.usage()
            statistics.owedRemovals = tiers.backing.owedCount
            statistics.fleet = services.relay?.statistics
            statistics.evictions = await tiers.memory.counters().evictions
            if let disk = tiers.backing.disk?.statistics { statistics.add(disk) }
            return statistics
        }
    }

    /// The work under way now, to find leaks and for a gauge.
    public var workUnderWay: WorkUnderWay {
        get async {
            var work = WorkUnderWay()
            for desk in services.desks { work.flights += desk.count }
            work.tasks = services.supervisor.taskCount
            work.limitedKeys = services.gate?.keyCount ?? 0
            return work
        }
    }
}
