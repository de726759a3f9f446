import CacheTestSupport

@testable import CacheEngineRedis

/// Several machines that read a model of the log, whose server and processes end.
struct ModelFleet {
    /// A purge, its giver, and the doubts that each machine had before it.
    private struct Given {
        let purge: FleetPurge
        let giver: Int
        let doubts: [Int]
    }

    private var log = ModelLog()
    /// What a replica has; a failover makes it the log.
    private var replica = ModelLog()
    /// The purges that log and replica have taken, also if they were trimmed.
    private var inLog: Set<FleetPurge.ID> = []
    private var inReplica: Set<FleetPurge.ID> = []
    private var machines: [ModelMachine]
    /// The purges that a process has appended or read since it began.
    private var held: [Set<FleetPurge.ID>]
    /// The number of purges that each machine had applied when its process began.
    private var appliedBefore: [Int]
    private var given: [Given] = []
    /// The purges that neither the log nor a living process has any more.
    private var lost: Set<FleetPurge.ID> = []
    /// The complaints so far.
    private(set) var faults: [String] = []

    init(machines count: Int) {
        machines = Array(repeating: ModelMachine(), count: count)
        held = Array(repeating: [], count: count)
        appliedBefore = Array(repeating: 0, count: count)
        for number in 0..<count { catchUp(number) }
    }

    /// A machine is given a purge, and the log confirms it.
    mutating func purge(by giver: Int) {
        let purge = FleetPurge(given.count + 1)
        given.append(Given(purge: purge, giver: giver, doubts: machines.map(\.doubts.count)))
        append(purge)
        held[giver].insert(purge.id)
        machines[giver].reader.appended([purge])
    }

    private mutating func append(_ purge: FleetPurge) {
        log.append(purge)
        inLog.insert(purge.id)
    }

    mutating func replicate() {
        replica = log
        inReplica = inLog
    }

    mutating func failOver() {
        log = replica
        inLog = inReplica
        log.failOver()
        replicate()
        noteLosses()
    }

    mutating func trim(to count: Int) { log.trim(to: count) }

    mutating func lose(_ number: Int) { machines[number].lose() }

    /// The process ends; its successor has the bookmark.
    mutating func restart(_ number: Int) {
        machines[number].reader = ModelMachine(machines[number].kept).reader
        held[number] = []
        appliedBefore[number] = machines[number].applied.count
        noteLosses()
    }

    /// A machine reads the log to its end, and restores what is missing there.
    mutating func catchUp(_ number: Int) {
        let (doubts, restored) = (
            machines[number].doubts.count, machines[number].restored.count
        )
        machines[number].catchUp(log, holdsEntries: true)
        let again = machines[number].restored.dropFirst(restored)
        for purge in again { append(purge) }
        machines[number].reader.restored(Array(again))
        let read = machines[number].applied.dropFirst(appliedBefore[number]).map(\.id)
        held[number].formUnion(read.filter { inLog.contains($0) })
        let missing = held[number].subtracting(inLog)
        guard !missing.isEmpty else { return }
        if machines[number].doubts.count == doubts {
            faults.append("machine \(number) restores too little: \(missing.map(\.low))")
        }
        // A log that was trimmed past the machine's place may have had them.
        held[number] = held[number].intersection(inLog)
        noteLosses()
    }

    private mutating func noteLosses() {
        for purge in given.map(\.purge.id) where !inLog.contains(purge) {
            if !held.contains(where: { $0.contains(purge) }) { lost.insert(purge) }
        }
    }

    /// Lets every machine read to the end, and checks that each knows each purge that is not lost.
    mutating func settle() {
        for _ in 0..<3 { for number in machines.indices { catchUp(number) } }
        for (number, machine) in machines.enumerated() {
            let applied = Set(machine.applied.map(\.id))
            for one in given where !lost.contains(one.purge.id) && one.giver != number {
                guard !applied.contains(one.purge.id) else { continue }
                guard machine.doubts.count == one.doubts[number] else { continue }
                faults.append("machine \(number) misses purge \(one.purge.id.low)")
            }
        }
    }

    var machineCount: Int { machines.count }
}
