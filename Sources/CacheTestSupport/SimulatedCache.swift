public import CacheEngine

/// A cache on a seeded executor and a manual clock.
///
/// Only the events that a test permits happen, in an order that one seed determines.
public struct SimulatedCache: Sendable {
    /// The executor of all tasks.
    public let executor: SeededExecutor
    /// The cache's clock.
    public let clock: TestClock
    /// The cache itself.
    public let cache: HTTPCache

    /// Opens a cache in front of `origin`; the configuration's clock and executor are replaced.
    public init(
        seed: UInt64 = 0,
        configuration: HTTPCache.Configuration = HTTPCache.Configuration(memory: .megabytes(32)),
        clock: TestClock = TestClock(),
        origin: any Origin,
        fleet: Fleet? = nil
    ) async throws {
        let world = SimulatedWorld(seed: seed, configuration: configuration, clock: clock)
        let isLooped = Self.way == .beginningEverything
        let opening = world.open(
            isLooped ? LoopedOrigin(origin, on: world.executor) : origin,
            fleet: fleet
        )
        await world.executor.settle()
        cache = try await opening.value.get()
        executor = world.executor
        self.clock = world.clock
    }

    /// The ways in which a caller asks the cache.
    package enum Way: Hashable, Sendable, CaseIterable {
        /// A task awaits the response.
        case responding
        /// An event loop begins the request, and is called with the response.
        case beginning
        /// The same, and the loop also begins the request to the origin.
        case beginningEverything
    }

    /// The way of the requests that are created now, unless they have a policy of their own.
    @TaskLocal package static var way = Way.responding

    /// Creates a request; it runs at the next `settle()`.
    public func ask(
        _ request: CacheRequest,
        policy: CachePolicy? = nil,
        reading: Caller.Reading = .steadily
    ) -> Caller {
        let caller = Caller(reading)
        let begins = Self.way != .responding && policy == nil
        caller.start(on: executor) { [cache] in
            begins
                ? try await Self.begin(request, cache)
                : try await cache.respond(to: request, policy: policy)
        }
        return caller
    }

    /// The response to a request that begins outside a task, as an event loop begins it.
    package static func begin(
        _ request: CacheRequest,
        _ cache: HTTPCache
    ) async throws -> CacheResponse {
        let answer = PendingAnswer()
        return try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                cache.begin(request, answer) { continuation.resume(with: $0) }
            }
        } onCancel: {
            answer.cancel()
        }
    }

    /// Starts a request and runs every job that is ready.
    public func answer(
        _ request: CacheRequest,
        policy: CachePolicy? = nil,
        reading: Caller.Reading = .steadily
    ) async -> Caller {
        let caller = ask(request, policy: policy, reading: reading)
        await settle()
        return caller
    }

    /// Runs every job that can run without time passing.
    public func settle() async { await executor.settle() }

    /// Advances the clock in small steps, so that a task that sleeps twice wakes twice.
    public func advance(seconds: Double) async {
        let steps = max(1, min(1_000, Int((seconds / 0.5).rounded(.up))))
        for _ in 0..<steps {
            clock.advance(seconds: seconds / Double(steps))
            await settle()
        }
    }

    /// Performs work on the cache and runs every job that is ready.
    public func perform(_ work: @escaping @Sendable (HTTPCache) async -> Void) async {
        executor.start { [cache] in await work(cache) }
        await settle()
    }

    /// The statistics of the cache.
    public var statistics: HTTPCache.Statistics {
        get async {
            let reading = executor.start { [cache] in await cache.statistics }
            await settle()
            return await reading.value
        }
    }

    /// The work under way; all its counts are zero if no task waits.
    public var work: WorkUnderWay {
        get async {
            let reading = executor.start { [cache] in await cache.workUnderWay }
            await settle()
            return await reading.value
        }
    }

    /// Shuts down the cache.
    ///
    /// - Returns: Whether the shutdown ended and left no work behind.
    public func shutDown() async -> Bool {
        let ending = executor.start { [cache] in
            await cache.shutDown()
            return await cache.workUnderWay
        }
        await settle()
        guard await hasEnded(ending) else { return false }
        return await ending.value == WorkUnderWay()
    }

    private func hasEnded(_ task: Task<WorkUnderWay, Never>) async -> Bool {
        // The task has ended if a second task can await it with only the jobs that are ready.
        let look = Look()
        executor.start {
            _ = await task.value
            look.note()
        }
        await settle()
        return look.isNoted
    }
}

/// The parts of a simulated cache, for tests that drive the executor themselves.
public struct SimulatedWorld: Sendable {
    /// The executor of all tasks.
    public let executor: SeededExecutor
    /// The cache's clock.
    public let clock: TestClock
    private let configuration: HTTPCache.Configuration

    /// Creates a world that `seed` determines.
    public init(
        seed: UInt64,
        configuration: HTTPCache.Configuration,
        clock: TestClock = TestClock()
    ) {
        self.clock = clock
        executor = SeededExecutor(seed: seed)
        var configuration = configuration
        configuration.clock = clock
        configuration.taskExecutor = executor
        configuration.hasher = KeyHasher(seed: KeyHash(placement: seed, identity: ~seed))
        self.configuration = configuration
    }

    /// Opens the cache; the task has ended when the executor is idle.
    public func open(
        _ origin: any Origin,
        fleet: Fleet? = nil
    ) -> Task<Result<HTTPCache, any Error>, Never> {
        executor.start { [configuration] in
            do {
                return .success(
                    try await HTTPCache(configuration: configuration, origin: origin, fleet: fleet)
                )
            } catch {
                return .failure(error)
            }
        }
    }
}
