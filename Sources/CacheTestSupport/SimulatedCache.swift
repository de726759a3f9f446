public import CacheEngine

/// A cache on a seeded executor and a clock that stands still: nothing happens but what a test lets
/// happen, and in an order that follows from one seed.
public struct SimulatedCache: Sendable {
    /// Where everything runs.
    public let executor: SeededExecutor
    /// The cache's clock.
    public let clock: TestClock
    /// The cache itself.
    public let cache: HTTPCache

    /// Opens a cache in front of `origin`; the configuration's clock and executor are replaced.
    public init(
        seed: UInt64 = 0,
        configuration: Configuration = Configuration(memory: .megabytes(32)),
        origin: any Origin
    ) async throws {
        let world = SimulatedWorld(seed: seed, configuration: configuration)
        let opening = world.open(origin)
        await world.executor.settle()
        cache = try await opening.value.get()
        executor = world.executor
        clock = world.clock
    }

    /// Starts a request; it runs at the next `settle()`.
    public func ask(
        _ request: CacheRequest,
        policy: CachePolicy? = nil,
        reading: Caller.Reading = .steadily
    ) -> Caller {
        let caller = Caller(reading)
        caller.start(on: executor) { [cache] in
            try await cache.respond(to: request, policy: policy)
        }
        return caller
    }

    /// Starts a request and lets everything happen that can.
    public func answer(
        _ request: CacheRequest,
        policy: CachePolicy? = nil,
        reading: Caller.Reading = .steadily
    ) async -> Caller {
        let caller = ask(request, policy: policy, reading: reading)
        await settle()
        return caller
    }

    /// Lets everything happen that can happen without time passing.
    public func settle() async { await executor.settle() }

    /// Moves the clock in small steps, so that who sleeps twice wakes twice.
    public func advance(seconds: Double) async {
        let steps = max(1, min(1_000, Int((seconds / 0.5).rounded(.up))))
        for _ in 0..<steps {
            clock.advance(seconds: seconds / Double(steps))
            await settle()
        }
    }

    /// Does something to the cache, and lets everything happen that can.
    public func perform(_ work: @escaping @Sendable (HTTPCache) async -> Void) async {
        executor.start { [cache] in await work(cache) }
        await settle()
    }

    /// What the cache has counted.
    public var statistics: Statistics {
        get async {
            let reading = executor.start { [cache] in await cache.statistics }
            await settle()
            return await reading.value
        }
    }

    /// The work under way: all zero when nobody waits for anything.
    public var work: WorkUnderWay {
        get async {
            let reading = executor.start { [cache] in await cache.workUnderWay }
            await settle()
            return await reading.value
        }
    }

    /// Ends the cache.
    ///
    /// - Returns: Whether it ended, and nothing was left of it.
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
        // The task is over if a second look at it needs nothing but the jobs that are ready.
        let look = Look()
        executor.start {
            _ = await task.value
            look.note()
        }
        await settle()
        return look.isNoted
    }
}

/// The parts of a simulated cache, for whoever drives the executor by hand.
public struct SimulatedWorld: Sendable {
    /// Where everything runs.
    public let executor: SeededExecutor
    /// The cache's clock.
    public let clock = TestClock()
    private let configuration: Configuration

    /// A world that follows `seed`.
    public init(seed: UInt64, configuration: Configuration) {
        executor = SeededExecutor(seed: seed)
        var configuration = configuration
        configuration.clock = clock
        configuration.taskExecutor = executor
        configuration.hasher = KeyHasher(seed: KeyHash(placement: seed, identity: ~seed))
        self.configuration = configuration
    }

    /// Opens the cache; done when the executor is idle.
    public func open(_ origin: any Origin) -> Task<Result<HTTPCache, any Error>, Never> {
        executor.start { [configuration] in
            do {
                return .success(
                    try await HTTPCache(configuration: configuration, origin: origin)
                )
            } catch {
                return .failure(error)
            }
        }
    }
}
