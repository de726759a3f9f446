import CacheEngine
import CacheTestSupport
import Synchronization

/// One complete life of a cache, determined by one seed.
///
/// The seed determines the callers, the origin, the store, the clock and the order of all events.
/// The `Ledger`, which knows which answers are permitted, judges every answer. A simulation also
/// fails if a request remains without an answer although no event is possible, if a request after
/// the last fault gets no response, if a task or a flight is left over, or if a shutdown does not
/// end.
public struct Simulation: Sendable {
    /// The result of a simulation.
    public struct Verdict: Sendable {
        /// The seed.
        public let seed: UInt64
        /// The failures, empty if there are none.
        public let problems: [String]
        /// The number of requests that got a response, and no error.
        public let answers: Int
        /// The number of jobs that ran.
        public let jobs: Int
        /// A digest of the order of events; it differs if two runs differ.
        public let trace: UInt64
        /// The kind of life.
        var size = Size.brief

        /// The line that describes a failed run and the command that repeats it.
        public var replay: String {
            "seed \(seed): \(problems.first ?? "fine"); make simulate SEED=\(seed) SIZE=\(size)"
        }
    }

    /// The amount of activity in one life.
    public enum Size: Sendable {
        /// A few callers of a few resources, for runs of a million seeds.
        case brief
        /// Dozens of callers in several rounds.
        case long
        /// Several machines over a model of Redis; see `FleetLife`.
        case fleet

        var rounds: Int { self == .brief ? 2 : 6 }
        var callersMax: Int { self == .brief ? 7 : 24 }
    }

    private let seed: UInt64
    private let size: Size
    private let dice: Dice
    private let ledger: Ledger
    private let world: SimulatedWorld
    private let capricious: CapriciousOrigin
    private let origin: NemesisOrigin
    private let store: NemesisStore?

    /// Creates a life that `seed` determines.
    public init(seed: UInt64, size: Size = .brief) {
        self.seed = seed
        self.size = size
        dice = Dice(seed: seed)
        let clock = TestClock()
        ledger = Ledger(clock)
        var configuration = Self.configuration(dice)
        configuration.bodyLimits = Self.bodyLimits(seed)
        if dice.oneIn(2) {
            let plan = NemesisPlan.seeded(seed, oneIn: 4 + dice.below(20), of: Self.storeMisdeeds)
            let store = NemesisStore(InMemoryStore(), clock: clock, plan: plan)
            configuration.backing = .custom(store, limits: Self.storeLimits(dice))
            // Without memory, every look-up reads the store.
            if dice.oneIn(3) { configuration.memory = .disabled }
            self.store = store
        } else {
            store = nil
        }
        world = SimulatedWorld(seed: seed, configuration: configuration, clock: clock)
        capricious = CapriciousOrigin(dice, ledger, world)
        origin = NemesisOrigin(
            capricious,
            clock: clock,
            plan: .seeded(~seed, oneIn: 20, of: Self.originMisdeeds)
        )
    }

    private static let storeMisdeeds: [Misdeed] = NemesisPlan.everyMisdeed

    /// The misdeeds of the origin.
    ///
    /// Unrequested confirmations are left out, because the capricious origin sends its own.
    private static let originMisdeeds = NemesisPlan.everyMisdeed.filter { $0 != .lies(.mixesUp) }

    private static func storeLimits(_ dice: Dice) -> StoreLimits {
        var limits = StoreLimits()
        limits.maximumOperationTime = .seconds(Double(1 + dice.below(4)))
        limits.maximumOperations = 1 + dice.below(4)
        limits.maximumLookUps = 2 + dice.below(20)
        limits.maximumAbandoned = 1 + dice.below(6)
        limits.maximumBarredKeys = dice.below(6)
        limits.maximumBarredScopes = dice.below(3)
        limits.minimumRetryDelay = .seconds(0.2)
        limits.maximumRetryDelay = .seconds(4)
        if dice.oneIn(4) { limits.maximumQueuedSize = .bytes(3_000) }
        if dice.oneIn(6) { limits.maximumQueuedKeys = 2 }
        return limits
    }

    /// In a quarter of the lives, arriving bodies have little memory; no die is thrown for it.
    private static func bodyLimits(_ seed: UInt64) -> BodyLimits? {
        guard seed % 4 == 1 else { return nil }
        return BodyLimits(
            totalBytes: Int(seed / 4 % 7) * 1_000,
            leastBytes: 1 + Int(seed / 28 % 5) * 100
        )
    }

    private static func configuration(_ dice: Dice) -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration(memory: .megabytes(1))
        configuration.originLimits.maximumHeadTime = .seconds(6)
        configuration.originLimits.maximumIdleTime = .seconds(5)
        configuration.originLimits.windowSize = .bytes(16 * 1_024)
        configuration.collapsing.maximumWait = .seconds(Double(2 + dice.below(6)))
        if dice.oneIn(2) { configuration.caching.conditionMiss = .whole }
        configuration.collapsing.maximumAge = .seconds(Double(4 + dice.below(8)))
        configuration.collapsing.maximumAttempts = 1 + dice.below(3)
        configuration.collapsing.maximumEscapes = 1 + dice.below(3)
        configuration.collapsing.maximumLookUps = 1 + dice.below(4)
        if dice.oneIn(4) { configuration.collapsing.maximumWaiters = 2 }
        if dice.oneIn(4) { configuration.collapsing.maximumFlights = 16 }
        if dice.oneIn(4) {
            configuration.collapsing.maximumOriginRequestsPerKey = 1 + dice.below(2)
        }
        if dice.oneIn(2) { configuration.collapsing.abandoned = .cancel }
        return configuration
    }

    // MARK: Running

    /// Whether an event loop begins the requests of clients, and those to the origin: in a third of
    /// the lives; no die is thrown for it.
    private var isOnLoop: Bool { seed % 3 == 2 }

    /// Runs the simulation; call it on a thread that runs no task.
    public func run() -> Verdict {
        let opening = Box<HTTPCache>()
        world.executor.start { [world, origin, ledger, isOnLoop] in
            let recorded = RecordedOrigin(origin, ledger)
            let looped = LoopedOrigin(recorded, on: world.executor)
            switch await world.open(isOnLoop ? looped : recorded).value {
            case .success(let cache): opening.put(cache)
            case .failure(let error): ledger.report("not opened: \(error)")
            }
        }
        world.executor.runUntilIdle()
        if let cache = opening.value { live(with: cache) }
        return Verdict(
            seed: seed,
            problems: ledger.problems.map { store == nil ? $0 : "with a store: \($0)" },
            answers: ledger.answers,
            jobs: world.executor.jobCount,
            trace: world.executor.trace,
            size: size
        )
    }

    private func live(with cache: HTTPCache) {
        var number = 0
        for _ in 0..<size.rounds {
            let open = Unfinished()
            for _ in 0..<2 + dice.below(size.callersMax) {
                number += 1
                start(RequestPlan(number, dice), cache, open)
            }
            for _ in 0..<dice.below(3) { startHandwork(cache, open) }
            letTimePass(until: open)
            world.clock.advance(seconds: Double(dice.below(8)))
        }
        end(cache)
    }

    /// Advances the clock whenever no job is ready, until every caller has finished.
    private func letTimePass(until open: Unfinished) {
        for _ in 0..<2_000 {
            world.executor.runUntilIdle()
            if open.isEmpty { return }
            if world.clock.sleeperCount == 0 { break }
            world.clock.advance(seconds: 0.5)
        }
        ledger.report("never answered: \(open.names)")
    }

    private func end(_ cache: HTTPCache) {
        capricious.calmDown()
        origin.follow(.harmless)
        store?.follow(.harmless)
        recover()
        checkNothingIsLeft(cache)
        askForEachPath(cache)
        recover()
        checkNothingIsLeft(cache)
        let over = Box<Bool>()
        world.executor.start {
            await cache.shutDown()
            over.put(true)
        }
        world.executor.runUntilIdle()
        if over.value != true { ledger.report("the shutdown does not end") }
    }

    /// Advances the clock, and releases the calls that hang, until nothing waits.
    private func recover() {
        for _ in 0..<400 {
            origin.release()
            store?.release()
            world.executor.runUntilIdle()
            let hungCount = origin.hungCount + (store?.hungCount ?? 0)
            if world.clock.sleeperCount == 0, hungCount == 0 { break }
            world.clock.advance(seconds: 0.5)
        }
    }

    private func checkNothingIsLeft(_ cache: HTTPCache) {
        let left = Box<WorkUnderWay>()
        world.executor.start { left.put(await cache.workUnderWay) }
        world.executor.runUntilIdle()
        if left.value != WorkUnderWay() { ledger.report("left over: \(left.value as Any)") }
        let owed = Box<Int>()
        world.executor.start { owed.put(await cache.statistics.owedRemovals) }
        world.executor.runUntilIdle()
        if owed.value != 0 { ledger.report("removals still owed: \(owed.value as Any)") }
    }

    /// Asks for each path after the last fault.
    private func askForEachPath(_ cache: HTTPCache) {
        // Longer than an error is shared, and than the pauses of a store that has failed.
        world.clock.advance(seconds: 5)
        let open = Unfinished()
        for path in Path.allCases { start(RequestPlan(last: path), cache, open) }
        letTimePass(until: open)
    }

    // MARK: Callers

    private func start(_ plan: RequestPlan, _ cache: HTTPCache, _ open: Unfinished) {
        open.begin(plan.name)
        let task = world.executor.start { [dice, ledger, isOnLoop] in
            for _ in 0..<dice.below(10) { await Task.yield() }
            var plan = plan
            plan.startedAt = ledger.begin(plan)
            let answer = await Self.ask(plan, cache, begins: isOnLoop)
            ledger.judge(answer, to: plan)
            open.end(plan.name)
        }
        guard let turns = plan.leavesAfter else { return }
        world.executor.start {
            for _ in 0..<turns { await Task.yield() }
            task.cancel()
        }
    }

    private static func ask(
        _ plan: RequestPlan,
        _ cache: HTTPCache,
        begins: Bool
    ) async -> Answer {
        var answer = Answer()
        do {
            var request = plan.request
            request.options.policy = plan.policy ?? request.options.policy
            let response =
                begins
                ? try await SimulatedCache.begin(request, cache)
                : try await cache.respond(to: request)
            answer.take(response)
            var iterator = response.body.makeAsyncIterator()
            while answer.bytes.count < min(plan.bytesMax, 400_000) {
                for _ in 0..<plan.pauseTurns { await Task.yield() }
                guard let piece = try await iterator.next() else {
                    answer.isWhole = true
                    break
                }
                answer.bytes += piece.array
            }
        } catch {
            answer.error = error
        }
        return answer
    }

    // MARK: Manual operations

    private func startHandwork(_ cache: HTTPCache, _ open: Unfinished) {
        let name = "handwork \(ledger.tick())"
        let path = dice.pick(Path.allCases)
        let kind = dice.below(6)
        open.begin(name)
        world.executor.start { [dice, ledger] in
            for _ in 0..<dice.below(12) { await Task.yield() }
            switch kind {
            case 0:
                await Self.remove(ledger, { $0 == path }) {
                    _ = try await cache.remove(CacheRequest(url: path.url))
                }
            case 1:
                await Self.remove(ledger, { _ in true }) {
                    _ = try await cache.purge(tag: "site")
                }
            case 2: await Self.remove(ledger, { _ in true }) { _ = try await cache.removeAll() }
            case 3: await cache.relieveMemoryPressure()
            case 4: try? await cache.flush()
            default: await Self.store(path, ledger, cache)
            }
            open.end(name)
        }
    }

    private static func remove(
        _ ledger: Ledger,
        _ covers: @escaping @Sendable (Path) -> Bool,
        _ work: () async throws -> Void
    ) async {
        let removal = ledger.beginRemoval(covers)
        // A removal that the store could not perform is owed, and takes effect all the same.
        try? await work()
        ledger.endRemoval(removal)
    }

    private static func store(_ path: Path, _ ledger: Ledger, _ cache: HTTPCache) async {
        let content = ledger.add(path, language: "de", caller: "by hand", askedAt: ledger.tick()) {
            $0.isShareable = true
            $0.isByHand = true
            // The content may be stored at any moment before the call returns.
            $0.arrivedAt = .max
            $0.endedAt = .max
        }
        var fields = path.fields(tag: content.tag)
        fields["X-Serial"] = String(content.serial)
        let response = CacheResponse(
            status: 200,
            fields: fields,
            body: BodyStream(ByteChunk(content.bytes))
        )
        var options = HTTPCache.ManualStoreOptions()
        options.tags = ["site"]
        let request = CacheRequest(url: path.url, fields: ["Accept-Language": "de"])
        _ = try? await cache.store(response, for: request, options: options)
        ledger.arrive(content.serial)
    }
}

/// The names of callers and manual operations that have not ended.
final class Unfinished: Sendable {
    private let state = Mutex<Set<String>>([])
    var isEmpty: Bool { state.withLock { $0.isEmpty } }
    var names: [String] { state.withLock { $0.sorted() } }
    func begin(_ name: String) { state.withLock { _ = $0.insert(name) } }
    func end(_ name: String) { state.withLock { _ = $0.remove(name) } }
}

/// A value that one task sets and the driver reads.
private final class Box<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)
    var value: Value? { state.withLock { $0 } }
    func put(_ value: Value) { state.withLock { $0 = value } }
}
