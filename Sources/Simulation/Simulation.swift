import CacheEngine
import CacheTestSupport
import Synchronization

/// One whole life of a cache that follows from one seed: its callers, its origin, its store, its
/// clock, and the order in which everything happens.
///
/// Every answer is held against the `Ledger`, which knows what may be given to whom. A request that
/// is not answered although nothing can happen any more, a task or a flight that is left over, and a
/// shutdown that does not end are problems too.
public struct Simulation: Sendable {
    /// What came of it.
    public struct Verdict: Sendable {
        /// The seed.
        public let seed: UInt64
        /// What went wrong; empty when nothing did.
        public let problems: [String]
        /// Requests answered.
        public let answers: Int
        /// Jobs run.
        public let jobs: Int
        /// The same for two runs only if the same happened in both.
        public let trace: UInt64

        /// The one line that repeats a failed run.
        public var replay: String {
            "seed \(seed): \(problems.first ?? "fine"); make simulate SEED=\(seed)"
        }
    }

    /// How much happens in one life.
    public enum Size: Sendable {
        /// A few callers of few resources: for a million seeds.
        case brief
        /// Some dozens of callers in several rounds.
        case long

        var rounds: Int { self == .brief ? 2 : 6 }
        var callersMax: Int { self == .brief ? 7 : 24 }
    }

    private let seed: UInt64
    private let size: Size
    private let dice: Dice
    private let ledger = Ledger()
    private let world: SimulatedWorld
    private let origin: CapriciousOrigin

    /// A life that follows from `seed`.
    public init(seed: UInt64, size: Size = .brief) {
        self.seed = seed
        self.size = size
        dice = Dice(seed: seed)
        world = SimulatedWorld(seed: seed, configuration: Self.configuration(dice))
        origin = CapriciousOrigin(dice, ledger, world)
    }

    private static func configuration(_ dice: Dice) -> Configuration {
        var configuration = Configuration(memory: .megabytes(1))
        if dice.oneIn(3) { configuration.disk = .store(FaultyStore(dice)) }
        configuration.originLimits.headSecondsMax = 6
        configuration.originLimits.idleSecondsMax = 5
        configuration.originLimits.windowBytes = 16 * 1_024
        configuration.flights.waitSecondsMax = Double(2 + dice.below(6))
        configuration.flights.ageSecondsMax = Double(4 + dice.below(8))
        configuration.flights.attemptsMax = 1 + dice.below(3)
        configuration.flights.escapesMax = 1 + dice.below(3)
        configuration.flights.lookUpsMax = 1 + dice.below(4)
        if dice.oneIn(4) { configuration.flights.waitersMax = 2 }
        if dice.oneIn(4) { configuration.flights.flightsMax = 16 }
        if dice.oneIn(4) { configuration.flights.originRequestsPerKeyMax = 1 + dice.below(2) }
        if dice.oneIn(2) { configuration.flights.abandoned = .cancel }
        return configuration
    }

    // MARK: Running

    /// Lives it through; to be called on a thread that runs no task.
    public func run() -> Verdict {
        let opening = Box<HTTPCache>()
        world.executor.start { [world, origin, ledger] in
            switch await world.open(origin).value {
            case .success(let cache): opening.put(cache)
            case .failure(let error): ledger.report("not opened: \(error)")
            }
        }
        world.executor.runUntilIdle()
        if let cache = opening.value { live(with: cache) }
        return Verdict(
            seed: seed,
            problems: ledger.problems,
            answers: ledger.answers,
            jobs: world.executor.jobCount,
            trace: world.executor.trace
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

    /// Moves the clock whenever nothing else can happen, until everybody is done.
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
        origin.calmDown()
        for _ in 0..<400 {
            world.executor.runUntilIdle()
            if world.clock.sleeperCount == 0 { break }
            world.clock.advance(seconds: 0.5)
        }
        let left = Box<WorkUnderWay>()
        world.executor.start { left.put(await cache.workUnderWay) }
        world.executor.runUntilIdle()
        if left.value != WorkUnderWay() { ledger.report("left over: \(left.value as Any)") }
        let over = Box<Bool>()
        world.executor.start {
            await cache.shutDown()
            over.put(true)
        }
        world.executor.runUntilIdle()
        if over.value != true { ledger.report("the shutdown does not end") }
    }

    // MARK: Callers

    private func start(_ plan: RequestPlan, _ cache: HTTPCache, _ open: Unfinished) {
        open.begin(plan.name)
        let task = world.executor.start { [dice, ledger] in
            for _ in 0..<dice.below(10) { await Task.yield() }
            var plan = plan
            plan.startedAt = ledger.tick()
            let answer = await Self.ask(plan, cache)
            ledger.judge(answer, to: plan)
            open.end(plan.name)
        }
        guard let turns = plan.leavesAfter else { return }
        world.executor.start {
            for _ in 0..<turns { await Task.yield() }
            task.cancel()
        }
    }

    private static func ask(_ plan: RequestPlan, _ cache: HTTPCache) async -> Answer {
        var answer = Answer()
        do {
            let response = try await cache.respond(to: plan.request, policy: plan.policy)
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

    // MARK: By hand

    private func startHandwork(_ cache: HTTPCache, _ open: Unfinished) {
        let name = "handwork \(ledger.tick())"
        let path = dice.pick(Path.allCases)
        let kind = dice.below(4)
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
        // A removal that failed promises nothing.
        guard (try? await work()) != nil else { return }
        ledger.endRemoval(removal)
    }

    private static func store(_ path: Path, _ ledger: Ledger, _ cache: HTTPCache) async {
        let content = ledger.add(path, language: "de", caller: "by hand", askedAt: ledger.tick()) {
            $0.isShareable = true
        }
        var fields = path.fields
        fields["X-Serial"] = String(content.serial)
        let response = CacheResponse(
            status: 200,
            fields: fields,
            body: BodyStream(ByteChunk(content.bytes))
        )
        var options = HTTPCache.StoreOptions()
        options.tags = ["site"]
        let request = CacheRequest(url: path.url, fields: ["Accept-Language": "de"])
        _ = try? await cache.store(response, for: request, options: options)
    }
}

/// Who has begun and not ended.
private final class Unfinished: Sendable {
    private let state = Mutex<Set<String>>([])
    var isEmpty: Bool { state.withLock { $0.isEmpty } }
    var names: [String] { state.withLock { $0.sorted() } }
    func begin(_ name: String) { state.withLock { _ = $0.insert(name) } }
    func end(_ name: String) { state.withLock { _ = $0.remove(name) } }
}

/// A value that one task puts in and the driver takes out.
private final class Box<Value: Sendable>: Sendable {
    private let state = Mutex<Value?>(nil)
    var value: Value? { state.withLock { $0 } }
    func put(_ value: Value) { state.withLock { $0 = value } }
}
