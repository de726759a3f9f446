import CacheEngine
import CacheTestSupport
import RESP
import RedisClient
import Synchronization
import Testing

@testable import CacheEngineRedis
@testable import Simulation

/// A model of Redis with one connection for each lane, as `RedisClient` has them.
///
/// The commands of a lane run in their order, also those whose callers have left: a later connection
/// of a lane takes commands only once the server has answered its greeting, and by then the server
/// has run what it had of the one before. A test holds a lane back, as a network does.
final class LaneServer: ModelServer {
    /// Commands that wait in their lane.
    private struct Order {
        let commands: [[[UInt8]]]
        let replies: Race<[RESPValue]>
    }

    private struct State {
        var orders: [RedisLane: [Order]] = [:]
        var hold: (lane: RedisLane, isFirst: @Sendable ([[UInt8]]) -> Bool)?
        var isHolding = false
        var failures: [RedisError.Code] = []
        var refusals = 0
        var refusal = ""
        var failsOver = false
        var names: [String] = []
        var limits: [Duration] = []
    }

    let model: ModelRedis
    private let state = Mutex(State())

    init(_ clock: TestClock = TestClock()) { model = ModelRedis(clock) }

    /// Holds a lane back from the first command on that `isFirst` names.
    func hold(_ lane: RedisLane, from isFirst: @escaping @Sendable ([[UInt8]]) -> Bool) {
        state.withLock { $0.hold = (lane, isFirst) }
    }

    var isHolding: Bool { state.withLock { $0.isHolding } }

    /// Whether commands of the lane are held back.
    func isHolding(_ lane: RedisLane) -> Bool { state.withLock { $0.orders[lane] != nil } }

    /// The names of the commands that were sent so far, also of those that are held back.
    var names: [String] { state.withLock { $0.names } }

    /// The limits of the exchanges so far.
    var limits: [Duration] { state.withLock { $0.limits } }

    /// Runs what was held back.
    func release(_ lane: RedisLane) {
        state.withLock { state in
            state.hold = nil
            state.isHolding = false
            run(lane, &state)
        }
    }

    /// The callers of a lane leave; their commands stay on their way.
    func abandon(_ lane: RedisLane) {
        let orders = state.withLock { $0.orders[lane] ?? [] }
        for order in orders {
            order.replies.finish(.failure(RedisError(.timedOut, detail: "The caller has left")))
        }
    }

    /// Refuses all but the first script of so many exchanges.
    func refuse(_ count: Int, _ text: String) {
        state.withLock { state in
            state.refusals = count
            state.refusal = text
        }
    }

    /// So many exchanges end with an error before the server has them.
    func fail(_ count: Int, _ code: RedisError.Code) {
        state.withLock { $0.failures = Array(repeating: code, count: count) }
    }

    /// The replica becomes the master after the next script that is sent whole.
    func failOverBehindTheNextScript() { state.withLock { $0.failsOver = true } }

    // MARK: As a machine sees it

    func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> [RESPValue] {
        if let code = state.withLock({ $0.failures.popLast() }) {
            throw RedisError(code, detail: "The test lets it fail")
        }
        return try await Self.replies(to: take(commands, within: limit, lane))
    }

    func post(
        _ command: RESPCommand,
        within limit: Duration,
        lane: RedisLane,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        let order = take([command], within: limit, lane)
        Task {
            do throws(RedisError) { follow(.success(try await Self.replies(to: order)[0])) } catch {
                follow(.failure(error))
            }
        }
    }

    /// Puts commands into their lane.
    private func take(
        _ commands: [RESPCommand],
        within limit: Duration?,
        _ lane: RedisLane
    ) -> Order {
        let order = Order(commands: commands.map(\.parsedWords), replies: Race())
        state.withLock { state in
            state.orders[lane, default: []].append(order)
            state.names += order.commands.map { String(decoding: $0[0], as: UTF8.self) }
            if let limit { state.limits.append(limit) }
            if let hold = state.hold, hold.lane == lane {
                if order.commands.contains(where: hold.isFirst) { state.isHolding = true }
                if state.isHolding { return }
            }
            run(lane, &state)
        }
        return order
    }

    private static func replies(to order: Order) async throws(RedisError) -> [RESPValue] {
        do { return try await order.replies.result() } catch {
            let gone = RedisError(.cancelled, detail: "The caller was cancelled")
            throw error as? RedisError ?? gone
        }
    }

    private func run(_ lane: RedisLane, _ state: inout State) {
        for order in state.orders.removeValue(forKey: lane) ?? [] {
            order.replies.finish(.success(replies(to: order.commands, &state)))
        }
    }

    private func replies(to commands: [[[UInt8]]], _ state: inout State) -> [RESPValue] {
        let isRefused = state.refusals > 0
        if isRefused { state.refusals -= 1 }
        return commands.enumerated().map { place, words in
            let name = String(decoding: words[0], as: UTF8.self)
            if name == "WAIT" { return .integer(0) }
            if isRefused, place > 0, name.hasPrefix("EVAL") { return .error(state.refusal) }
            let reply = model.run(words)
            if state.failsOver, name == "EVAL" {
                state.failsOver = false
                model.failOver(oldServesOn: false)
            }
            return reply
        }
    }

    var isSuspended: Bool { false }
    var counts: RedisCounts { RedisCounts() }
    func shutDown() async { for lane in [RedisLane.data, .bulk, .appending] { abandon(lane) } }
}

extension LaneServer {
    /// Another machine appends a purge.
    func append(_ number: Int, to keys: LogKeys) {
        let purge = FleetPurge(number)
        let words = [
            FleetPurge.ID.random().bytes, Array("0".utf8), Array("65536".utf8), purge.id.bytes,
            Array(purge.kind.utf8), Array(purge.scope.utf8), purge.value,
        ]
        let command = FleetScript.append.command(keys.both, isWhole: true, words)
        guard case .array = model.run(command.parsedWords) else {
            Issue.record("the model takes no purge")
            return
        }
    }

    /// The purges in the log, in its order.
    func appended(_ keys: LogKeys) -> [FleetPurge] {
        let reply = model.run(["XRANGE", keys.stream, "-", "+"].map { Array($0.utf8) })
        return LogEntry.list(reply)?.compactMap(\.purge) ?? []
    }
}
