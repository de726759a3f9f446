import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Synchronization
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// Purges that the log has lost are appended again beside the reading.
@Suite(.timeLimit(.minutes(1)))
struct PurgeRestorerTests {
    private static let keys = LogKeys(namespace: "t")

    private let server = LaneServer()

    /// The purges in the log, in its order.
    private var appended: [FleetPurge] { server.appended(Self.keys) }

    /// Another machine appends a purge.
    private func append(_ number: Int) { server.append(number, to: Self.keys) }

    /// An append may take seconds, and the purges of other machines do not wait for it.
    @Test func purgesOfOthersAreAppliedWhileALostOneIsAppended() async throws {
        let fleet = RedisFleet(
            log: server,
            entries: nil,
            "t",
            at: LaneServer.address,
            RedisFleetOptions()
        )
        let receiver = ModelReceiver()
        await fleet.start(receiver)
        append(1)
        server.model.replicate()
        append(2)
        let isRead = await eventually { receiver.applied.count == 2 }
        #expect(isRead)
        server.hold(.appending) { _ in true }
        server.model.failOver(oldServesOn: false)
        #expect(await eventually { server.isHolding })
        append(3)
        let isApplied = await eventually {
            receiver.applied.contains(FleetPurge(3).purge)
        }
        #expect(isApplied)
        #expect(server.isHolding && appended == [FleetPurge(1), FleetPurge(3)])
        server.release(.appending)
        #expect(await eventually { appended.contains(FleetPurge(2)) })
        // The end of the log is read some more times.
        let count = server.names.count
        #expect(await eventually { server.names.count > count + 100 })
        #expect(appended == [FleetPurge(1), FleetPurge(3), FleetPurge(2)])
        #expect(fleet.statistics.restored == 1)
        await fleet.shutDown()
    }

    /// Each machine owes the same purges, and another one has appended them meanwhile.
    @Test func purgesThatAnotherMachineHasRestoredAreNotAppendedAgain() async throws {
        let (fleet, store, receiver) = try await sharing()
        server.model.replicate()
        for number in 1...300 { append(number) }
        #expect(await eventually { receiver.applied.count == 300 })
        server.hold(.appending) { _ in true }
        server.model.failOver(oldServesOn: false)
        #expect(await eventually { server.isHolding })
        for number in 1...301 { append(number) }
        #expect(await eventually { receiver.applied.count == 301 })
        server.release(.appending)
        #expect(await eventually { fleet.statistics.restored > 0 })
        // The end of the log is read some more times.
        let count = server.names.count
        #expect(await eventually { server.names.count > count + 100 })
        #expect(appended.count == 301 + PurgeLogWriter.batchCountMax)
        #expect(fleet.statistics.restored == PurgeLogWriter.batchCountMax)
        // All have their places: each record from behind them is used again.
        #expect(!store.hasUnplacedPurges)
        await fleet.shutDown()
    }

    // MARK: The purges for the shared store

    /// A machine of a fleet that shares entries, and what it has received.
    private func sharing() async throws -> (RedisFleet, SharedStore, ModelReceiver) {
        var options = RedisFleetOptions()
        options.shares = .entries
        let fleet = RedisFleet(
            log: server,
            entries: LaneServer(),
            "t",
            at: LaneServer.address,
            options
        )
        let receiver = ModelReceiver()
        await fleet.start(receiver)
        let store = try #require(fleet.sharedTier as? SharedStore)
        #expect(store.isBegun)
        return (fleet, store, receiver)
    }

    /// The client is told to send the purge again, and another machine may get it.
    @Test func purgeThatFailedHoldsUpToTheEndOfTheLog() async throws {
        let (fleet, store, _) = try await sharing()
        server.model.mood.isFull = true
        let purge = SharedPurge(.tag("a"), isSoft: false)
        fleet.announce([purge])
        let error = await #expect(throws: CacheError.self) {
            try await fleet.share([purge], areApplied: true)
        }
        #expect(error?.code == .fleetFailed)
        server.model.mood.isFull = false
        // The end of the log is read some more times.
        let count = server.names.count
        #expect(await eventually { server.names.count > count + 100 })
        // The reader must not see the next purge, which begins an epoch.
        server.hold(.blocking) { _ in true }
        #expect(await eventually { server.isHolding(.blocking) })
        append(1)
        let log = try #require(store.state.withLock { $0.horizon.log })
        let record = SharedRecord(
            Samples.entry(tags: ["a"]),
            position: FleetPosition(1, 1).rawValue,
            publishedMilliseconds: 100,
            storedSeconds: 0,
            log: log
        )
        let key = SharedKey(bytes: [2, 2], resource: [2])
        #expect(store.state.withLock { $0.horizon.permits(record, of: key) })
        server.release(.blocking)
        await fleet.shutDown()
    }

    /// The log is lost: the next purge, or the next reader, begins another one.
    private func loseLog() {
        _ = server.model.run(["DEL", Self.keys.stream, Self.keys.meta].map { Array($0.utf8) })
    }

    /// A log has many pages, and the purges of other machines do not wait for them.
    @Test func purgesOfOthersAreAppliedWhileTheSharedStoreReadsTheLog() async throws {
        let (fleet, store, receiver) = try await sharing()
        server.hold(.data) { $0[0] == Array("HMGET".utf8) }
        loseLog()
        #expect(await eventually { server.isHolding })
        #expect(!store.isBegun)
        append(1)
        #expect(await eventually { receiver.applied.count == 1 })
        #expect(server.isHolding && !store.isBegun)
        server.release(.data)
        #expect(await eventually { store.isBegun })
        await fleet.shutDown()
    }

    /// Another log has taken the place of the one that was asked for, and the reader does not know.
    @Test func purgesOfAnotherLogAreNotTaken() async throws {
        let (fleet, store, _) = try await sharing()
        server.hold(.data) { $0[0] == Array("HMGET".utf8) }
        loseLog()
        #expect(await eventually { server.isHolding })
        server.hold(.blocking) { _ in true }
        #expect(await eventually { server.isHolding(.blocking) })
        loseLog()
        append(1)
        server.release(.data)
        #expect(await eventually { !store.isBeginning })
        #expect(!store.isBegun)
        server.release(.blocking)
        #expect(await eventually { store.isBegun })
        await fleet.shutDown()
    }

    /// The lane of the pages is still with a server that has fewer purges than the reader has seen.
    @Test func purgesOfAServerThatLagsAreNotTaken() async throws {
        let (fleet, store, receiver) = try await sharing()
        append(1)
        #expect(await eventually { receiver.applied.count == 1 })
        let newest = try #require(last)
        server.hold(.data) { $0[0] == Array("HMGET".utf8) }
        store.end()
        #expect(await eventually { server.isHolding })
        server.hold(.blocking) { _ in true }
        #expect(await eventually { server.isHolding(.blocking) })
        setLast(Array("0-0".utf8))
        server.release(.data)
        #expect(await eventually { !store.isBeginning })
        #expect(!store.isBegun)
        setLast(newest)
        server.release(.blocking)
        #expect(await eventually { store.isBegun })
        await fleet.shutDown()
    }

    /// The last position of the log.
    private var last: [UInt8]? {
        server.model.run(["HMGET", Self.keys.meta, "last"].map { Array($0.utf8) }).elements?.first?
            .bytes
    }

    private func setLast(_ position: [UInt8]) {
        let words = ["HSET", Self.keys.meta, "last"].map { Array($0.utf8) } + [position]
        _ = server.model.run(words)
    }

    /// Purges may be missed while the log is read: what was read is not enough any more.
    @Test func purgesThatWereReadBeforeAnEndAreNotTaken() throws {
        let time = FleetTime()
        time.note(serverMilliseconds: 1_700_000_000_000)
        let store = SharedStore(server, namespace: "t", FleetSurroundings(), time, FleetCounts())
        let log = [UInt8](repeating: 1, count: SharedRecord.logBytes)
        let number = try #require(store.takeBeginning())
        #expect(store.takeBeginning() == nil, "one task reads them")
        store.end()
        store.begin(log: log, floor: 0, [], number)
        store.endBeginning()
        #expect(!store.isBegun)
        let next = try #require(store.takeBeginning())
        store.begin(log: log, floor: 0, [], next)
        #expect(store.isBegun)
    }

    // MARK: The purges as a value

    private static func entry(_ number: Int) -> LogEntry {
        LogEntry(
            position: FleetPosition(2, UInt64(number)),
            previous: .zero,
            purge: FleetPurge(number)
        )
    }

    private let batch = [FleetPurge(1), FleetPurge(2)]

    /// The reader may read purges back before the writer has its reply, or before it asks again.
    @Test func purgeThatIsReadBackIsNotExpected() {
        var lost = LostPurges()
        #expect(lost.add(batch) == batch && lost.next() == batch && lost.next() == nil)
        #expect(lost.note([Self.entry(1)]).isEmpty)
        lost.noteTaken()
        #expect(lost.takeTaken() == [FleetPurge(2)])
        #expect(lost.takeTaken() == [] && lost.isEmpty)
        _ = lost.add(batch)
        _ = lost.next()
        lost.noteTaken()
        #expect(lost.note([Self.entry(2), Self.entry(3)]).isEmpty)
        #expect(lost.takeTaken() == [FleetPurge(1)])
    }

    /// A server took the batch and was lost before the writer had its reply.
    @Test func purgeThatIsLostAgainBeforeItsReceiptIsExpected() {
        var lost = LostPurges()
        _ = lost.add(batch)
        _ = lost.next()
        #expect(lost.note([Self.entry(1), Self.entry(2)]).isEmpty)
        #expect(lost.add(batch) == [])
        lost.noteTaken()
        #expect(lost.takeTaken() == batch)
    }

    @Test func purgeThatAnotherMachineHasAppendedIsNotOwed() {
        var lost = LostPurges()
        let all = (1...300).map { FleetPurge($0) }
        #expect(lost.add(all) == all)
        _ = lost.next()
        #expect(lost.note([Self.entry(1), Self.entry(280), Self.entry(999)]) == [Self.entry(280)])
        #expect(lost.note([Self.entry(280)]).isEmpty)
        lost.noteTaken()
        #expect(lost.next()?.map(\.id.low) == Array(257...279) + Array(281...300))
    }

    @Test func batchThatFailsIsTheNextOne() {
        var lost = LostPurges()
        let all = (1...300).map { FleetPurge($0) }
        #expect(lost.add(all) == all)
        let first = lost.next()
        #expect(first == Array(all.prefix(256)))
        #expect(lost.note([Self.entry(7)]).isEmpty)
        lost.noteFailure()
        #expect(lost.add(Array(all.suffix(100))) == [])
        #expect(lost.next() == first)
        lost.noteTaken()
        // The other attempt may have been read back, and this one not.
        #expect(lost.takeTaken() == first)
        #expect(lost.next()?.count == 44)
        lost.noteTaken()
        #expect(lost.isEmpty)
    }
}
