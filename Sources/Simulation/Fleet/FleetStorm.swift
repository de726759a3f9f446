import CacheTestSupport

/// The faults that strike a simulated fleet as a whole.
struct FleetStorm {
    private let faults: FleetFaults
    private let dice: Dice
    private let world: FleetMachine.World
    private let machines: [FleetMachine]

    init(
        _ faults: FleetFaults,
        _ dice: Dice,
        _ world: FleetMachine.World,
        _ machines: [FleetMachine]
    ) {
        self.faults = faults
        self.dice = dice
        self.world = world
        self.machines = machines
    }

    /// One event, if the life has faults of its kind.
    func strike() {
        let redis = world.redis
        let number = dice.below(12)
        world.ledger.tell("storm \(number)")
        switch number {
        case 0 where faults.contains(.failover): failOver()
        case 1 where faults.contains(.failover): failOver()
        case 2 where faults.contains(.eviction):
            let isLog = dice.oneIn(8)
            redis.evict {
                $0.contains("{log}") == isLog
            } _: {
                dice.below($0)
            }
        case 3 where faults.contains(.eviction):
            for _ in 0..<4 {
                redis.evict {
                    !$0.contains("{log}")
                } _: {
                    dice.below($0)
                }
            }
        case 4 where faults.contains(.errors): sulk()
        case 5 where faults.contains(.outages): cut()
        case 6 where faults.contains(.flush) && dice.oneIn(3): redis.flush()
        case 7 where faults.contains(.trimming): redis.trim(to: dice.below(4))
        case 8 where faults.contains(.serverClock):
            redis.shiftClock(bySeconds: Int64(dice.below(181)) - 90)
        case 9 where faults.contains(.failover): redis.restart()
        default: if faults.contains(.restarts) { restart(dice.pick(machines)) }
        }
    }

    /// Ends every fault that lasts.
    func end() {
        world.redis.mood = ModelRedis.Mood()
        world.redis.endDeposed()
        for machine in machines {
            machine.killAfter(works: nil)
            machine.process?.log.cut(false)
            machine.process?.entries.cut(false)
            if machine.mayStart { machine.start() }
        }
    }

    // MARK: Events

    private func failOver() {
        let (redis, world) = (world.redis, world)
        let oldServesOn = faults.contains(.twoMasters) && dice.oneIn(2)
        redis.failOver(oldServesOn: oldServesOn)
        world.ledger.lost(except: redis.history)
        if faults.contains(.serverClock), dice.oneIn(3) {
            redis.shiftClock(bySeconds: Int64(dice.below(21)) - 10)
        }
        if dice.oneIn(4) {
            later {
                redis.failOver(oldServesOn: false, formerReturns: true)
                world.ledger.lost(except: redis.history)
            }
        }
        guard oldServesOn else { return }
        for machine in machines where dice.oneIn(2) {
            machine.process?.log.followDeposed()
            if dice.oneIn(2) { machine.process?.entries.followDeposed() }
        }
        later { redis.endDeposed() }
    }

    private func sulk() {
        let redis = world.redis
        var mood = ModelRedis.Mood()
        switch dice.below(4) {
        case 0: mood.isLoading = true
        case 1: mood.isFull = true
        case 2: mood.isReadOnly = true
        default: return redis.forgetScripts()
        }
        redis.mood = mood
        later { redis.mood = ModelRedis.Mood() }
    }

    private func cut() {
        let some = dice.oneIn(3) ? machines : [dice.pick(machines)]
        for machine in some {
            guard let process = machine.process else { continue }
            process.log.cut(true)
            if dice.oneIn(2) { process.entries.cut(true) }
            later {
                process.log.cut(false)
                process.entries.cut(false)
            }
        }
    }

    private func restart(_ machine: FleetMachine) {
        if machine.mayStart { return machine.start() }
        guard machine.process != nil else { return }
        let isWithin = machine.storage == .disk && dice.oneIn(2)
        if isWithin {
            machine.killAfter(works: dice.below(12))
        } else {
            machine.stop(atOnce: dice.oneIn(2))
        }
        later { if machine.mayStart { machine.start() } }
    }

    /// Does something after up to eight seconds.
    private func later(_ body: @escaping @Sendable () -> Void) {
        let delay = UInt64(dice.below(8_000)) * 1_000_000
        world.executor.start { [clock = world.clock] in
            try? await clock.sleep(nanoseconds: delay)
            body()
        }
    }
}
