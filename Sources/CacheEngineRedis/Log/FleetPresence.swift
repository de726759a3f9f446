import CacheEngine
import RESP
import RedisClient
import Synchronization

/// This machine among the machines of its fleet: it reports its place, and asks for the places of
/// the others.
final class FleetPresence: Sendable {
    /// The time that a purge waits for the machines.
    private static let waitNanoseconds: UInt64 = 5_000_000_000
    /// The pauses between two looks at their reports, in milliseconds; the last one repeats.
    private static let pausesMilliseconds: [UInt64] = [5, 10, 20, 40, 50]
    /// The time for one look, and for the farewell.
    private static let replyLimit = Duration.milliseconds(500)

    private let client: any FleetServer
    private let surroundings: FleetSurroundings
    private let keys: LogKeys
    private let address: NodeAddress
    private let time: FleetTime
    private let machine = Bookmark.hex(FleetPurge.ID.random().bytes)
    private let hasReported = Atomic(false)
    private let hasEnded = Atomic(false)
    /// The moment, in nanoseconds, until which machines may be alive whose reports are lost.
    private let uncertainUntil = Atomic<UInt64>(0)

    init(
        _ client: any FleetServer,
        _ surroundings: FleetSurroundings,
        _ keys: LogKeys,
        at address: NodeAddress,
        _ time: FleetTime
    ) {
        self.client = client
        self.surroundings = surroundings
        self.keys = keys
        self.address = address
        self.time = time
    }

    // MARK: Reporting

    /// The command that reports a place; `nil` before the fleet's time is known.
    ///
    /// The reader sends it with each question, so it costs no round trip, and a purge is reported
    /// as soon as it is applied. Its failure is not one of the log.
    func report(_ mark: Bookmark) -> RESPCommand? {
        guard let now = time.now(), !hasEnded.load(ordering: .acquiring) else { return nil }
        let report = PlaceReport(machine: machine, mark, milliseconds: now)
        hasReported.store(true, ordering: .relaxed)
        return RESPCommand("HSET", key: keys.machines, machine, report.text)
    }

    /// Reports the first place on a connection, and returns once the server has it, or refuses it, or
    /// does not answer in time.
    func announce(_ mark: Bookmark) async {
        guard let report = report(mark) else { return }
        _ = try? await client.send(report, within: Self.replyLimit, lane: .data)
    }

    /// Removes the reports of machines that have ended without a farewell.
    func removeGone() async {
        let questions = [RESPCommand("HGETALL", key: keys.machines), RESPCommand("TIME")]
        guard
            let replies = try? await client.together(
                questions,
                by: Array(keys.machines.utf8),
                within: Self.replyLimit,
                lane: .data
            ),
            // The server's own time: after a step of its clock, this machine's estimate is wrong.
            let now = FleetTime.milliseconds(replies[1]),
            let gone = PlaceReports(replies[0])?.gone(at: now), !gone.isEmpty
        else { return }
        var removal = RESPCommand("HDEL", key: keys.machines)
        for machine in gone { removal.add(machine) }
        _ = try? await client.send(removal, within: Self.replyLimit, lane: .data)
    }

    /// Removes this machine's report, so that no purge waits for it.
    func withdraw() async {
        hasEnded.store(true, ordering: .releasing)
        guard hasReported.load(ordering: .relaxed) else { return }
        // A report that was under way goes over another connection, and may come after the first
        // removal. The second one is sent a round trip later, and almost always comes after it;
        // otherwise purges wait for this machine until its report is ten seconds old.
        for _ in 0..<2 {
            let removal = RESPCommand("HDEL", key: keys.machines, machine)
            do throws(RedisError) {
                _ = try await client.send(removal, within: Self.replyLimit, lane: .data)
            } catch {
                // Another connection may still take it.
                if error.code != .cut { return }
            }
        }
    }

    /// The log is another one, and the reports were in the old one: for as long as a machine may be
    /// alive without a report, it is not known which machines there are.
    func noteReplacedLog() {
        let life = UInt64(PlaceReport.lifeMilliseconds) * 1_000_000
        uncertainUntil.store(surroundings.nowNanoseconds + life, ordering: .releasing)
    }

    private var isCertain: Bool {
        surroundings.nowNanoseconds >= uncertainUntil.load(ordering: .acquiring)
    }

    // MARK: Asking

    /// Waits until all machines have applied the purge at `position`, for a bounded time; returns
    /// `nil` if their places cannot be read, or it is not known which machines there are.
    func reach(of position: FleetPosition) async -> FleetReach? {
        let end = surroundings.nowNanoseconds + Self.waitNanoseconds
        var last: FleetReach?
        for attempt in 0... {
            do throws(RedisError) {
                last = try await look(for: position) ?? last
                let isComplete = isCertain && last?.isComplete == true
                if isComplete || Mutant.waitsForNoMachine.isOn { return last }
            } catch {
                // A later look would be refused too.
                if error.code == .notPermitted || error.code == .shutDown { break }
            }
            let pause = Self.pausesMilliseconds[min(attempt, Self.pausesMilliseconds.count - 1)]
            guard surroundings.nowNanoseconds + pause * 1_000_000 < end, !Task.isCancelled else {
                break
            }
            try? await surroundings.clock.sleep(nanoseconds: pause * 1_000_000)
        }
        return isCertain ? last : nil
    }

    private func look(for position: FleetPosition) async throws(RedisError) -> FleetReach? {
        let questions = [
            RESPCommand("HGETALL", key: keys.machines), RESPCommand("HMGET", key: keys.meta, "inc"),
            RESPCommand("TIME"),
        ]
        let replies = try await client.together(
            questions,
            by: Array(keys.meta.utf8),
            within: Self.replyLimit,
            lane: .data
        )
        for case .error(let text) in replies { throw RedisError(reply: text, from: address) }
        guard let reports = PlaceReports(replies[0]),
            let log = replies[1].elements?.first?.bytes.flatMap({ FleetPurge.ID($0) }),
            let now = FleetTime.milliseconds(replies[2])
        else { return nil }
        return reports.reach(of: position, in: log, at: now)
    }
}
