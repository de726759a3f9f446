import CacheEngine
import CacheTestSupport
import Testing

@testable import CacheEngineRedis

/// The reader of the log, against a model of it.
@Suite struct LogReaderTests {
    /// A machine that has read purges 1 to `count` of a log.
    private func linked(_ count: Int) -> (ModelLog, ModelMachine) {
        var log = ModelLog()
        var machine = ModelMachine()
        machine.catchUp(log)
        for number in 0..<count { log.append(number + 1) }
        machine.catchUp(log)
        return (log, machine)
    }

    @Test func purgesAreAppliedInOrderAndOnce() {
        let (log, machine) = linked(1_300)
        #expect(numbers(machine.applied) == (1...1_300).map(UInt64.init))
        #expect(machine.doubts.isEmpty)
        #expect(machine.kept?.position == log.last && machine.kept?.id == log.lastID)
    }

    @Test func positionIsKeptBehindThePurges() {
        var (log, machine) = linked(1)
        for number in 2...4 { log.append(number) }
        let actions = machine.reader.received(
            log.reply(to: machine.reader.question),
            now: 0,
            holdsEntries: true
        )
        let kept = actions.firstIndex { if case .keep = $0 { true } else { false } }
        let applied = actions.lastIndex { if case .apply = $0 { true } else { false } }
        #expect(applied == 2 && kept == 3)
    }

    @Test func emptyCacheBeginsAtTheEndOfTheLog() {
        var log = ModelLog()
        for number in 1...9 { log.append(number) }
        var machine = ModelMachine()
        machine.catchUp(log)
        #expect(machine.applied.isEmpty && machine.doubts.isEmpty)
        log.append(10)
        machine.catchUp(log)
        #expect(numbers(machine.applied) == [10])
    }

    @Test func cacheWithEntriesAndNoPositionLetsAllBeConfirmed() {
        var machine = ModelMachine()
        machine.catchUp(ModelLog(), holdsEntries: true)
        #expect(machine.doubts.map(\.doubt) == [.positionUnknown])
        machine.catchUp(ModelLog(), holdsEntries: true)
        #expect(machine.doubts.count == 1)
    }

    @Test func gapOfACutConnectionIsReplayed() {
        var (log, machine) = linked(3)
        machine.lose()
        for number in 4...8 { log.append(number) }
        machine.catchUp(log, holdsEntries: true)
        #expect(numbers(machine.applied) == (1...8).map(UInt64.init))
        #expect(machine.doubts.isEmpty && machine.replays == 1)
    }

    @Test func gapOfARestartIsReplayed() throws {
        var (log, machine) = linked(3)
        let kept = try #require(machine.kept)
        for number in 4...8 { log.append(number) }
        machine = ModelMachine(kept)
        machine.catchUp(log, holdsEntries: true)
        #expect(numbers(machine.applied) == [4, 5, 6, 7, 8])
        #expect(machine.doubts.isEmpty)
    }

    /// Two servers were masters at once, and both gave a purge the same place; the reader changes from
    /// one to the other without a new connection.
    @Test func placeThatAnotherPurgeHasIsNoticedWithinAConnection() {
        var (log, machine) = linked(2)
        var other = log
        log.append(3)
        machine.catchUp(log)
        other.append(4)
        other.append(5)
        machine.catchUp(other, holdsEntries: true)
        #expect(numbers(machine.applied) == [1, 2, 3, 4, 5])
        #expect(numbers(machine.restored) == [3])
        #expect(machine.doubts.isEmpty)
    }

    @Test func logThatWasTrimmedPastThePositionLetsAllBeConfirmed() {
        for isTrimmedWhole in [false, true] {
            var (log, machine) = linked(3)
            machine.lose()
            for number in 4...20 { log.append(number) }
            log.trim(to: isTrimmedWhole ? 0 : 5)
            machine.catchUp(log, holdsEntries: true)
            #expect(machine.doubts.map(\.doubt) == [.logTrimmed])
            #expect(machine.kept?.position == log.last)
            log.append(21)
            machine.catchUp(log)
            #expect(numbers(machine.applied).last == 21)
        }
    }

    @Test func logThatIsTrimmedExactlyUpToThePositionIsReplayed() {
        var (log, machine) = linked(3)
        machine.lose()
        for number in 4...8 { log.append(number) }
        log.trim(to: 6)
        machine.catchUp(log)
        #expect(machine.doubts.isEmpty && machine.applied.count == 8)
    }

    @Test func trimmedEntriesUnderALivingConnectionAreNoticed() {
        var (log, machine) = linked(3)
        for number in 4...9 { log.append(number) }
        log.trim(to: 2)
        machine.catchUp(log)
        #expect(machine.doubts.map(\.doubt) == [.logTrimmed])
    }

    @Test func deletedStreamUnderALivingConnectionIsNoticed() {
        var (log, machine) = linked(3)
        log.append(4)
        log.entries = []
        machine.catchUp(log)
        machine.catchUp(log)
        #expect(machine.doubts.map(\.doubt) == [.logTrimmed])
        #expect(machine.kept?.position == log.last)
    }

    @Test func otherIncarnationLetsAllBeConfirmed() {
        let (_, before) = linked(3)
        for isLost in [true, false] {
            var machine = before
            var other = ModelLog(incarnation: FleetPurge.ID(2_000_000))
            other.append(50)
            if isLost { machine.lose() }
            machine.catchUp(other, holdsEntries: true)
            #expect(machine.doubts.map(\.doubt) == [.logReplaced])
            #expect(machine.restored.isEmpty)
            other.append(51)
            machine.catchUp(other)
            #expect(numbers(machine.applied) == [1, 2, 3, 51])
        }
    }

    @Test func lostEndIsRestoredAndWhatFollowedItIsReplayed() {
        var (log, machine) = linked(3)
        var failed = log
        for number in 4...6 { log.append(number) }
        machine.catchUp(log)
        machine.lose()
        failed.failOver()
        for number in 10...12 { failed.append(number) }
        machine.catchUp(failed, holdsEntries: true)
        #expect(machine.doubts.isEmpty)
        #expect(numbers(machine.applied) == [1, 2, 3, 4, 5, 6, 10, 11, 12])
        #expect(numbers(machine.restored) == [4, 5, 6])
        // A restored purge comes back with another position and is not applied again.
        for purge in machine.restored { failed.append(purge) }
        machine.catchUp(failed)
        #expect(machine.applied.count == 9)
    }

    /// Two servers may give one position to different purges.
    @Test func otherPurgeAtThePositionIsNotTakenForTheSame() {
        var (log, machine) = linked(3)
        var other = log
        log.append(4)
        machine.catchUp(log)
        machine.lose()
        other.append(9)
        #expect(other.last == log.last)
        other.append(10)
        machine.catchUp(other)
        #expect(numbers(machine.applied) == [1, 2, 3, 4, 9, 10])
        #expect(numbers(machine.restored) == [4])
    }

    @Test func logThatLostMoreThanIsRememberedLetsAllBeConfirmed() throws {
        var log = ModelLog()
        for number in 1...5 { log.append(number) }
        let old = log
        for number in 6...9 { log.append(number) }
        var machine = ModelMachine()
        machine.catchUp(log)
        log.append(10)
        machine.catchUp(log)
        machine.lose()
        var failed = old
        failed.failOver()
        failed.append(20)
        machine.catchUp(failed)
        #expect(machine.doubts.map(\.doubt) == [.placeLost])
        #expect(numbers(machine.restored) == [10])
    }

    /// A server takes over and is lost, and the one of before serves on: the epoch that began between
    /// them is not begun again.
    @Test(arguments: [true, false])
    func logThatLostAnEpochDoesNotBeginItAgain(isRemembered: Bool) throws {
        var (log, machine) = linked(3)
        let old = log
        log.failOver()
        log.append(4)
        machine.catchUp(log)
        #expect(machine.reader.epoch == 2)
        if !isRemembered { machine = ModelMachine(machine.kept) }
        machine.lose()
        machine.catchUp(old, holdsEntries: true)
        #expect(machine.doubts.map(\.doubt) == (isRemembered ? [] : [.placeLost]))
        #expect(machine.kept?.position == FleetPosition(1, 3))
        #expect(machine.reader.epoch == 2)
        log = old
        log.append(5, seen: machine.reader.epoch)
        #expect(log.last == FleetPosition(3, 1))
    }

    @Test func epochsOfAnotherLogDoNotCount() {
        var (log, machine) = linked(3)
        log.failOver()
        log.append(4)
        machine.catchUp(log)
        machine.lose()
        var other = ModelLog(incarnation: FleetPurge.ID(2_000_000))
        other.append(50)
        machine.catchUp(other, holdsEntries: true)
        #expect(machine.reader.epoch == 1)
    }

    @Test func entryOfANewerVersionLetsAllBeConfirmed() {
        var (log, machine) = linked(1)
        let position = FleetPosition(1, 2)
        log.entries.append(LogEntry(position: position, previous: log.last, purge: nil))
        (log.last, log.lastID, log.number) = (position, nil, 2)
        machine.catchUp(log)
        #expect(machine.doubts.map(\.doubt) == [.entryUnreadable])
        log.append(3)
        machine.catchUp(log)
        #expect(numbers(machine.applied) == [1, 3])
    }

    @Test func cutOffIsCountedOnceAndRevalidatesAtEachLag() {
        let second: UInt64 = 1_000_000_000
        for revalidates in [false, true] {
            var machine = ModelMachine(revalidates: revalidates)
            machine.catchUp(ModelLog())
            var cutOffs = 0
            for step in 1...35 {
                let actions = machine.reader.failed(now: UInt64(step) * second)
                cutOffs += actions.count { $0 == .cutOff }
                machine.perform(actions)
            }
            #expect(cutOffs == 1)
            #expect(machine.doubts.count == (revalidates ? 3 : 0))
            machine.catchUp(ModelLog(), now: 36 * second)
            let early = machine.reader.failed(now: 40 * second)
            #expect(early.isEmpty)
            let late = machine.reader.failed(now: 47 * second)
            #expect(late.contains(.cutOff))
        }
    }

    /// A machine that may not serve without the log doubts its entries from the start.
    @Test(arguments: [(false, true, 0), (true, false, 0), (true, true, 1)])
    func restartWithoutTheLogDoubtsOldEntries(_ row: (Bool, Bool, Int)) {
        let hour: UInt64 = 3_600_000_000_000
        var reader = LogReader(
            Bookmark(incarnation: .random(), position: .zero, id: nil),
            .init(lagNanoseconds: ModelMachine.lag, revalidates: row.0),
            now: hour,
            holdsEntries: row.1
        )
        let actions = reader.failed(now: hour + 1)
        #expect(actions.count { $0 == .markEverythingStale(.cutOff) } == row.2)
        let later = reader.failed(now: hour + 2)
        #expect(later.isEmpty)
    }

    /// After any faults, every machine has applied every purge, or has doubted all its entries since.
    ///
    /// Only a purge may be missing that no replica had, and that no process which had appended or
    /// read it outlived.
    @Test(arguments: 0..<UInt64(400))
    func noPurgeIsMissedWhateverHappens(seed: UInt64) throws {
        var random = SeededRandom(seed: seed)
        var fleet = ModelFleet(machines: 3)
        for _ in 0..<80 {
            let machine = Int.random(in: 0..<fleet.machineCount, using: &random)
            switch Int.random(in: 0..<12, using: &random) {
            case 0..<5:
                for _ in 0..<Int.random(in: 1...4, using: &random) { fleet.purge(by: machine) }
                if Bool.random(using: &random) { fleet.replicate() }
            case 5..<8: fleet.catchUp(machine)
            case 8: fleet.lose(machine)
            case 9: fleet.trim(to: Int.random(in: 0...6, using: &random))
            case 10: fleet.failOver()
            default: fleet.restart(machine)
            }
        }
        fleet.settle()
        #expect(fleet.faults.isEmpty, "seed \(seed): \(fleet.faults)")
    }
}
