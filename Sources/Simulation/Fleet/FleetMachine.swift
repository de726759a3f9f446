import CacheEngine
import CacheEngineRedis
import CacheTestSupport
import Synchronization

/// One machine of a simulated fleet: its storage, and the process that uses it now.
final class FleetMachine: Sendable {
    /// The storage behind the memory.
    enum Storage: CaseIterable {
        case none, disk
    }

    /// The world in which machines live.
    struct World: Sendable {
        let clock: TestClock
        let executor: SeededExecutor
        let dice: Dice
        let ledger: FleetLedger
        let redis: ModelRedis
        let origin: FleetOrigin
        let faults: FleetFaults
        let options: RedisFleetOptions
        let seed: UInt64
    }

    /// One run of the cache's program.
    struct Process: Sendable {
        let number: Int
        let log: ModelLink
        let entries: ModelLink
        let witness: LogWitness
        let pool: IOPool?
        let cache: Opened
    }

    /// The cache, once it is open.
    final class Opened: Sendable {
        private let state = Mutex<HTTPCache?>(nil)
        var value: HTTPCache? { state.withLock { $0 } }
        func put(_ cache: HTTPCache) { state.withLock { $0 = cache } }
    }

    private struct State {
        var disk: FaultyFileSystem
        /// The pools of all processes so far; a stopped one may still have work.
        var pools: [IOPool] = []
        /// The pieces of work on the disk after which the process is killed.
        var worksUntilDeath: Int?
        var process: Process?
        var starts = 0
        /// A process that ends in good order still uses the disk.
        var isStopping = false
    }

    let number: Int
    let storage: Storage
    private let world: World
    private let diskOffset: Int64
    private let state: Mutex<State>

    init(_ number: Int, _ storage: Storage, _ world: World) {
        self.number = number
        self.storage = storage
        self.world = world
        diskOffset = Int64(world.dice.below(181)) - 90
        state = Mutex(State(disk: FaultyFileSystem(seed: world.seed)))
    }

    /// The process that runs; `nil` while the machine is off.
    var process: Process? { state.withLock { $0.process } }

    /// Runs one piece of work on the disk; returns `false` if the disk has no work.
    func work() -> Bool {
        guard state.withLock({ $0.pools }).contains(where: { $0.runOne() }) else { return false }
        let isDoomed = state.withLock { state in
            guard let left = state.worksUntilDeath else { return false }
            state.worksUntilDeath = left > 0 ? left - 1 : nil
            return left == 0
        }
        if isDoomed { stop(atOnce: true) }
        return true
    }

    /// Kills the process in the midst of its work on the disk.
    func killAfter(works: Int?) { state.withLock { $0.worksUntilDeath = works } }

    // MARK: Life

    var mayStart: Bool { state.withLock { $0.process == nil && !$0.isStopping } }

    /// Starts a process; its cache opens once the executor runs.
    func start() {
        let (dice, executor) = (world.dice, world.executor)
        let clock = MachineClock(
            world: world.clock,
            offsetSeconds: clockOffset(),
            startNanoseconds: UInt64(dice.below(1_000)) * 1_000_000_007
        )
        let isHeir = storage != .none && state.withLock { $0.starts > 0 }
        let number = world.ledger.begin(
            machine: number,
            heir: isHeir,
            world.redis.history
        )
        let witness = LogWitness(number, world.ledger)
        let process = Process(
            number: number,
            log: link(clock, limit: 1_000_000_000, witness),
            entries: link(clock, limit: 25_000_000, nil),
            witness: witness,
            pool: storage == .disk ? .manual() : nil,
            cache: Opened()
        )
        let disk = state.withLock { state in
            state.starts += 1
            if let pool = process.pool { state.pools.append(pool) }
            state.process = process
            return state.disk
        }
        let configuration = configuration(clock, disk, process.pool)
        let options = world.options
        let fleet = Fleet { [world] in
            RedisFleet(
                log: process.log,
                entries: options.shares == .entries ? process.entries : nil,
                "sim",
                at: ModelLink.address,
                options,
                FleetSurroundings(clock: clock, executor: executor) { range in
                    range.lowerBound + UInt64(world.dice.below(range.count))
                }
            )
        }
        executor.start { [world] in
            do {
                process.cache.put(
                    try await HTTPCache(
                        configuration: configuration,
                        origin: world.origin,
                        fleet: fleet
                    )
                )
            } catch {
                world.ledger.report("machine \(number) does not open: \(error)")
            }
        }
    }

    /// Ends the process: at once, or in good order.
    func stop(atOnce isKilled: Bool) {
        // A process that is still starting cannot end in good order.
        let atOnce = isKilled || process?.cache.value == nil
        let process = state.withLock { state -> Process? in
            defer { state.process = nil }
            // The old process keeps the device that it has; it writes nothing to the new one.
            if atOnce { state.disk = state.disk.copy(afterPowerCut: false, seed: world.seed) }
            state.isStopping = !atOnce
            return state.process
        }
        guard let process else { return }
        world.ledger.end(process: process.number)
        if atOnce {
            process.log.kill()
            process.entries.kill()
        }
        world.executor.start { [self] in
            await process.cache.value?.shutDown()
            if !atOnce { state.withLock { $0.isStopping = false } }
        }
    }

    /// Ages on a disk are counted by its machine's clock, which is then always the same.
    private func clockOffset() -> Int64 {
        guard world.faults.contains(.machineClocks) else { return 0 }
        let offset = Int64(world.dice.below(181)) - 90
        return storage == .disk ? diskOffset : offset
    }

    private func link(
        _ clock: MachineClock,
        limit: UInt64,
        _ witness: LogWitness?
    ) -> ModelLink {
        ModelLink(
            world.redis,
            clock,
            world.executor,
            world.dice,
            world.faults.weather(world.dice),
            defaultLimit: limit,
            witness: witness
        )
    }

    private func configuration(
        _ clock: MachineClock,
        _ disk: FaultyFileSystem,
        _ pool: IOPool?
    ) -> HTTPCache.Configuration {
        var configuration = HTTPCache.Configuration(memory: .megabytes(1), mode: .shared)
        switch storage {
        case .none: break
        case .disk:
            configuration.backing = .disk(path: "/disk", capacity: .megabytes(8))
            configuration.backing.fileSystem = .replaced(disk)
            configuration.backing.pool = pool
            // The disk counts by the clock of this computer, which no seed determines. So no time
            // makes it write: a caller does.
            configuration.backing.flushMilliseconds = 1_000_000
        }
        configuration.clock = clock
        configuration.taskExecutor = world.executor
        configuration.hasher = KeyHasher(
            seed: KeyHash(placement: world.seed, identity: UInt64(number))
        )
        configuration.originLimits.maximumHeadTime = .seconds(6)
        return configuration
    }
}
