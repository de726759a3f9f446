import CacheEngine
import Platform
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

    private struct State {
        var hasReported = false
        var hasEnded = false
        /// Finished when the server has the last report before a question, or it is lost.
        var lastReport: Race<Void>?
        var unreadable = UnreadableReports()
    }

    private let client: any FleetServer
    private let surroundings: FleetSurroundings
    private let keys: LogKeys
    private let address: NodeAddress
    private let time: FleetTime
    private let machine = Bookmark.hex(FleetPurge.ID.random().bytes)
    private let state = Mutex(State())
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

    /// Reports a place before the reader's next question, on the same lane.
    ///
    /// On that lane the report costs no round trip and follows each purge. A replica refuses it, so
    /// the reader notices a server that has become one. A report that fails is no failure of the log.
    func report(_ mark: Bookmark, within limit: Duration) {
        state.withLock { state in
            let isKnown = post(mark, within: limit, lane: .blocking, &state)
            if let isKnown { state.lastReport = isKnown }
        }
    }

    /// Reports the first place on a connection, and returns once the server has it, or refuses it, or
    /// does not answer in time.
    func announce(_ mark: Bookmark) async {
        let isKnown = state.withLock { post(mark, within: Self.replyLimit, lane: .data, &$0) }
        try? await isKnown?.result()
    }

    /// Sends a report, unless the fleet's time is not known yet or the machine has ended; the result
    /// is there when the server has it, or it is lost.
    ///
    /// The caller has the lock, so that no report is sent after the farewell.
    private func post(
        _ mark: Bookmark,
        within limit: Duration,
        lane: RedisLane,
        _ state: inout State
    ) -> Race<Void>? {
        guard !state.hasEnded, let now = time.now() else { return nil }
        state.hasReported = true
        let report = PlaceReport(machine: machine, mark, milliseconds: now)
        let command = RESPCommand("HSET", key: keys.machines, machine, report.text)
        let isKnown = Race<Void>()
        client.post(command, within: limit, lane: lane) { _ in isKnown.finish(.success(())) }
        return isKnown
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
            let now = FleetTime.milliseconds(replies[1]), var reports = PlaceReports(replies[0])
        else { return }
        let unreadable = sift(&reports)
        let gone = reports.gone(at: now)
        guard !gone.isEmpty || !unreadable.isEmpty else { return }
        var removal = RESPCommand("HDEL", key: keys.machines)
        for machine in gone { removal.add(machine) }
        for name in unreadable { removal.add(name) }
        _ = try? await client.send(removal, within: Self.replyLimit, lane: .data)
    }

    /// Leaves out the fields that no machine writes any more; returns their names.
    private func sift(_ reports: inout PlaceReports) -> [[UInt8]] {
        let now = surroundings.nowNanoseconds
        return state.withLock { $0.unreadable.sift(&reports, nowNanoseconds: now) }
    }

    /// Removes this machine's report, so that no purge waits for it.
    func withdraw() async {
        let (hasReported, lastReport) = state.withLock { state in
            state.hasEnded = true
            return (state.hasReported, state.lastReport.take())
        }
        guard hasReported else { return }
        // The last report may be under way on another connection. If that is lost, and the report
        // comes after the removal, purges wait for this machine until the report is ten seconds old.
        if let lastReport, !Mutant.withdrawsAtOnce.isOn { await settle(lastReport) }
        for _ in 0..<2 {
            let removal = RESPCommand("HDEL", key: keys.machines, machine)
            do throws(RedisError) {
                _ = try await client.send(removal, within: Self.replyLimit, lane: .data)
                return
            } catch {
                // Another connection may still take it.
                if error.code != .cut { return }
            }
        }
    }

    /// Waits until the server has a report, for at most `replyLimit`.
    private func settle(_ isKnown: Race<Void>) async {
        let timer = surroundings.start { [clock = surroundings.clock] in
            try? await clock.sleep(nanoseconds: Self.replyLimit.nanoseconds)
            isKnown.finish(.success(()))
        }
        try? await isKnown.resultDespiteCancellation()
        timer.cancel()
    }

    /// Notes that the log was replaced, and the reports with it.
    ///
    /// Until each living machine must have reported again, it is not known which machines there are.
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
        guard var reports = PlaceReports(replies[0]),
            let log = replies[1].elements?.first?.bytes.flatMap({ FleetPurge.ID($0) }),
            let now = FleetTime.milliseconds(replies[2])
        else { return nil }
        _ = sift(&reports)
        return reports.reach(of: position, in: log, at: now)
    }
}
