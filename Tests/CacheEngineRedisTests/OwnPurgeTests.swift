import CacheTestSupport
import Testing

@testable import CacheEngineRedis

/// A machine keeps the purges that it appended until it has read them back.
@Suite struct OwnPurgeTests {
    /// A machine that has read purges 1 to 3, and its log.
    private func linked() -> (ModelLog, ModelMachine) {
        var log = ModelLog()
        var machine = ModelMachine()
        machine.catchUp(log)
        for number in 1...3 { log.append(number) }
        machine.catchUp(log)
        return (log, machine)
    }

    /// The log's server confirms purge 4 and is lost before a machine reads it.
    @Test func ownPurgeThatTheLogLostIsRestored() {
        var (log, machine) = linked()
        log.failOver()
        machine.reader.appended([FleetPurge(4)])
        machine.lose()
        machine.catchUp(log, holdsEntries: true)
        #expect(numbers(machine.restored) == [4])
        #expect(machine.doubts.isEmpty)
    }

    /// The server that took over has other purges, and this machine is not at its end at once.
    @Test func ownPurgeIsRestoredOnlyAtTheEndOfTheLog() {
        var (log, machine) = linked()
        for number in 10..<700 { log.append(number) }
        machine.reader.appended([FleetPurge(699)])
        machine.catchUp(log)
        #expect(machine.restored.isEmpty)
        #expect(numbers(machine.applied).suffix(2) == [698, 699])
    }

    @Test(arguments: [false, true])
    func ownPurgeThatIsReadBackIsNotRestored(isNotedLate: Bool) {
        var (log, machine) = linked()
        log.append(4)
        if !isNotedLate { machine.reader.appended([FleetPurge(4)]) }
        machine.catchUp(log)
        // The reader may see a purge before the writer has its reply.
        if isNotedLate { machine.reader.appended([FleetPurge(4)]) }
        machine.catchUp(log)
        machine.lose()
        machine.catchUp(log)
        #expect(machine.restored.isEmpty)
    }

    @Test func restoredPurgeThatIsLostAgainIsRestoredAgain() {
        var (log, machine) = linked()
        machine.reader.appended([FleetPurge(4)])
        for round in 1...3 {
            log.failOver()
            machine.lose()
            machine.catchUp(log)
            #expect(numbers(machine.restored) == Array(repeating: 4, count: round))
            machine.reader.restored([FleetPurge(4)])
        }
        log.append(4)
        machine.catchUp(log)
        machine.catchUp(log)
        #expect(machine.restored.count == 3)
    }

    /// The place in the log is lost too: the purges that were read come back, and the own ones.
    @Test func ownPurgeIsRestoredBesideThoseThatWereRead() {
        var (log, machine) = linked()
        var failed = log
        log.append(4)
        machine.catchUp(log)
        machine.reader.appended([FleetPurge(5)])
        failed.failOver()
        failed.append(9)
        machine.lose()
        machine.catchUp(failed)
        #expect(numbers(machine.restored) == [4, 5])
        #expect(numbers(machine.applied) == [1, 2, 3, 4, 9])
        // The next server has lost them again, and has the place of the machine.
        machine.reader.restored([FleetPurge(4), FleetPurge(5)])
        failed.failOver()
        machine.lose()
        machine.catchUp(failed)
        #expect(numbers(machine.restored) == [4, 5, 4, 5])
    }

    // MARK: The bounded list

    @Test func oldestPurgesAreForgotten() {
        var unread = UnreadPurges(countMax: 8)
        for number in 1...50 {
            unread.insert(FleetPurge(number))
            #expect(unread.count <= 8)
        }
        let kept = numbers(unread.takeAll())
        #expect(kept.count >= 6 && kept == Array(kept.sorted()) && kept.last == 50)
        #expect(unread.takeAll().isEmpty)
        var bytes = UnreadPurges(bytesMax: 2_000)
        for number in 1...50 { bytes.insert(FleetPurge(number)) }
        #expect((5...16).contains(bytes.takeAll().count))
    }

    @Test(arguments: 0..<UInt64(64))
    func listIsThatOfAModel(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        var unread = UnreadPurges()
        var model: [UInt64] = []
        for number in 1...400 {
            switch Int.random(in: 0..<10, using: &random) {
            case 0..<5:
                unread.insert(FleetPurge(number))
                model.append(UInt64(number))
            case 5:
                unread.insert(FleetPurge(Int(model.first ?? 1_000)))
                if model.isEmpty { model.append(1_000) }
            case 6..<9:
                guard let place = model.indices.randomElement(using: &random) else { continue }
                unread.remove(FleetPurge.ID(Int(model.remove(at: place))))
            default:
                unread.remove(FleetPurge.ID(99_999))
                guard number % 7 == 0 else { continue }
                #expect(numbers(unread.takeAll()) == model)
                model = []
            }
            #expect(unread.count == model.count)
        }
        #expect(numbers(unread.takeAll()) == model)
    }
}
