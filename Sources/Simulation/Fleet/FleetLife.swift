import CacheEngine
import CacheEngineRedis
import CacheTestSupport
import Synchronization

/// One life of a fleet: several machines, a model of their Redis, one origin, and the faults of one
/// seed.
///
/// The seed determines every event and their order. The `FleetLedger` judges each answer by the
/// promises (a) to (d) of `docs/fleet.md`; after the last fault all machines must know every purge.
package struct FleetLife: Sendable {
    private static let roundsMax = 24
    /// The simulated time after the last fault in which everything must be well again.
    private static let recoverySeconds = 30.0

    private let seed: UInt64
    private let faults: FleetFaults
    private let dice: Dice
    private let world: FleetMachine.World
    private let machines: [FleetMachine]
    private let open = Unfinished()

    /// Creates a life that `seed` determines, with some or all faults, or with those that are given.
    ///
    /// `tellsStory` keeps a line for each event.
    package init(seed: UInt64, faults given: FleetFaults? = nil, tellsStory: Bool = false) {
        self.seed = seed
        let dice = Dice(seed: seed)
        let faults = given ?? .seeded(seed, dice)
        let clock = TestClock()
        let ledger = FleetLedger(
            clock,
            judgesAges: faults.hasSteadyTime,
            judgesUnsafeMethods: faults.keepsRecords,
            tellsStory: tellsStory
        )
        var options = RedisFleetOptions()
        options.shares = dice.oneIn(6) ? .purges : .entries
        options.maximumLag = .seconds(2 + dice.below(9))
        options.whenCutOff = dice.oneIn(3) ? .revalidate : .serve
        let world = FleetMachine.World(
            clock: clock,
            executor: SeededExecutor(seed: seed),
            dice: dice,
            ledger: ledger,
            redis: ModelRedis(clock) { ledger.appended($0) },
            origin: FleetOrigin(dice, ledger, clock),
            faults: faults,
            options: options,
            seed: seed
        )
        self.dice = dice
        self.faults = faults
        self.world = world
        machines = (0..<2 + dice.below(2)).map { number in
            FleetMachine(number, dice.oneIn(3) ? .disk : .none, world)
        }
    }

    /// The events so far, if they were asked for.
    package var story: [String] { world.ledger.story }

    // MARK: Running

    /// Runs the life; call it on a thread that runs no task.
    package func run() -> Simulation.Verdict {
        for machine in machines { machine.start() }
        pass(seconds: 3)
        for number in 0..<8 + dice.below(Self.roundsMax) {
            if number > 1, dice.oneIn(2) { FleetStorm(faults, dice, world, machines).strike() }
            startCallers()
            pass(seconds: Double(dice.below(40)) / 10)
        }
        recover()
        judgeAtTheEnd()
        for machine in machines { machine.stop(atOnce: false) }
        pass(seconds: 20)
        if !open.isEmpty { world.ledger.report("never answered: \(open.names)") }
        return Simulation.Verdict(
            seed: seed,
            problems: world.ledger.problems,
            answers: world.ledger.answers,
            jobs: world.executor.jobCount,
            trace: world.executor.trace,
            size: .fleet
        )
    }

    /// Lets simulated time pass; every task runs as soon as it can.
    private func pass(seconds: Double) {
        let end = world.clock.monotonicNanoseconds + UInt64(seconds * 1e9)
        settle()
        while world.clock.monotonicNanoseconds < end {
            let left = Double(end - world.clock.monotonicNanoseconds) / 1e9
            world.clock.advanceToNextSleeper(within: left)
            settle()
        }
    }

    private func settle() {
        var isBusy = true
        while isBusy {
            world.executor.runUntilIdle()
            isBusy = false
            // One piece at a time, so that tasks run between two steps on a disk.
            for machine in machines where machine.work() { isBusy = true }
        }
    }

    /// Ends all faults; every machine must then read the log to its end.
    private func recover() {
        FleetStorm(faults, dice, world, machines).end()
        world.ledger.calmDown()
        pass(seconds: Self.recoverySeconds)
        for machine in machines where machine.mayStart { machine.start() }
        pass(seconds: Self.recoverySeconds)
        let last = world.redis.history.last?.position
        for machine in machines {
            guard let process = machine.process, process.cache.value != nil else {
                world.ledger.report("machine \(machine.number) does not run")
                continue
            }
            guard let last else { continue }
            let position = process.witness.readUpTo
            if position.map({ $0 < last && world.redis.isInLog(last) }) ?? true {
                world.ledger.report(
                    "(b) machine \(machine.number) has read up to \(position as Any) of \(last)"
                )
            }
        }
    }

    private func judgeAtTheEnd() {
        for machine in machines {
            for path in FleetPath.allCases {
                for language in path.variants { ask(machine, path, language, isLast: true) }
            }
        }
        pass(seconds: 20)
    }

    // MARK: Callers

    private func startCallers() {
        for _ in 0..<1 + dice.below(6) {
            let path = dice.pick(FleetPath.allCases)
            ask(dice.pick(machines), path, dice.pick(FleetPath.languages), isLast: false)
        }
        for _ in 0..<dice.below(3) { purge(dice.pick(machines)) }
        if dice.oneIn(4) { change(dice.pick(machines), dice.pick(FleetPath.allCases)) }
        if dice.oneIn(2) { flush(dice.pick(machines)) }
    }

    private func ask(
        _ machine: FleetMachine,
        _ path: FleetPath,
        _ language: String,
        isLast: Bool
    ) {
        guard let process = machine.process, let cache = process.cache.value else { return }
        var question = FleetQuestion(
            name: "caller \(world.ledger.tick())",
            process: process.number,
            path: path,
            language: language
        )
        question.isUnconditional = !isLast && dice.oneIn(12)
        let turns = dice.below(8)
        start(question.name) { [world, question] in
            for _ in 0..<turns { await Task.yield() }
            var question = question
            question.startedAt = world.ledger.tick()
            var answer = FleetAnswer()
            do {
                let response = try await cache.respond(to: question.request)
                answer.take(response)
                answer.bytes = try await response.body.collect(upTo: .megabytes(1)).array
            } catch { answer.error = error }
            guard isLast else { return world.ledger.judge(answer, to: question) }
            world.ledger.judgeAtTheEnd(answer, to: question, world.redis)
        }
    }

    private func purge(_ machine: FleetMachine) {
        guard let process = machine.process, let cache = process.cache.value else { return }
        let isSoft = dice.oneIn(3)
        let path = dice.pick(FleetPath.allCases)
        let language = dice.pick(path.variants)
        let (target, scope): (PurgeTarget, FleetScope.Target)
        switch dice.below(6) {
        case 0: (target, scope) = (.everything, .everything)
        case 1, 2:
            let tag = dice.pick(["site", "news", "tvarying"])
            (target, scope) = (.tag(tag), .tag(tag))
        default:
            target = .request(CacheRequest(url: path.url, fields: ["Accept-Language": language]))
            scope = .path(path)
        }
        let name = "purge \(world.ledger.tick())"
        let turns = dice.below(8)
        start(name) { [world] in
            for _ in 0..<turns { await Task.yield() }
            let ledger = world.ledger
            let number = ledger.beginPurge(
                FleetScope(scope, isSoft: isSoft),
                by: process.number
            )
            do {
                let receipt = try await cache.purge(target, isSoft: isSoft).receipt
                ledger.endPurge(number, receipt: receipt.map { ModelStreamID($0) })
            } catch let error as CacheError where error.code == .purgeNotShared {
                ledger.endPurge(number, receipt: nil)
            } catch {}
        }
    }

    /// A client changes a resource, which ends its response on the machine that is asked.
    private func change(_ machine: FleetMachine, _ path: FleetPath) {
        guard let process = machine.process, let cache = process.cache.value else { return }
        start("change \(world.ledger.tick())") { [world] in
            let number = world.ledger.beginPurge(
                FleetScope(.path(path), isSoft: false),
                by: process.number,
                isUnsafeMethod: true
            )
            var request = CacheRequest(url: path.url)
            request.method = .post
            guard let response = try? await cache.respond(to: request), response.status == 200
            else { return }
            world.ledger.endPurge(number, receipt: nil)
        }
    }

    private func flush(_ machine: FleetMachine) {
        guard let cache = machine.process?.cache.value else { return }
        // It fails if the disk does.
        start("flush \(world.ledger.tick())") { try? await cache.flush() }
    }

    private func start(_ name: String, _ body: @escaping @Sendable () async -> Void) {
        open.begin(name)
        world.executor.start { [open] in
            await body()
            open.end(name)
        }
    }
}

extension ModelStreamID {
    /// The ID of the entry with the position of a receipt.
    init(_ receipt: FleetReceipt) {
        self.init(first: receipt.position >> 40, second: receipt.position & (1 << 40 - 1))
    }
}
