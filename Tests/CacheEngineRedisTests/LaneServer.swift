import CacheTestSupport
import RESP
import RedisClient
import Synchronization

@testable import CacheEngineRedis
@testable import Simulation

/// A model of Redis with one connection for each lane, as `RedisClient` has them.
///
/// The commands of a lane run in their order, also those whose callers have left: a later connection
/// of a lane takes commands only once the server has answered its greeting, and by then the server
/// has run what it had of the one before. A test holds a lane back, as a network does.
final class LaneServer: FleetServer {
    static let address = NodeAddress(host: "model", port: 1)

    /// Commands that wait in their lane.
    private struct Order {
        let commands: [[[UInt8]]]
        let waiter: Waiter
    }

    private struct State {
        var orders: [RedisLane: [Order]] = [:]
        var hold: (lane: RedisLane, isFirst: @Sendable ([[UInt8]]) -> Bool)?
        var isHolding = false
        var refusals = 0
        var refusal = ""
        var failsOver = false
        var names: [String] = []
    }

    let model = ModelRedis(TestClock())
    private let state = Mutex(State())

    /// Holds a lane back from the first command on that `isFirst` names.
    func hold(_ lane: RedisLane, from isFirst: @escaping @Sendable ([[UInt8]]) -> Bool) {
        state.withLock { $0.hold = (lane, isFirst) }
    }

    var isHolding: Bool { state.withLock { $0.isHolding } }

    /// The names of the commands that were sent so far, also of those that are held back.
    var names: [String] { state.withLock { $0.names } }

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
            order.waiter.finish(.failure(RedisError(.timedOut, detail: "The caller has left")))
        }
    }

    /// Refuses all but the first script of so many exchanges.
    func refuse(_ count: Int, _ text: String) {
        state.withLock { state in
            state.refusals = count
            state.refusal = text
        }
    }

    /// The replica becomes the master behind the next script that is sent whole.
    func failOverBehindTheNextScript() { state.withLock { $0.failsOver = true } }

    // MARK: As a machine sees it

    func send(
        _ command: RESPCommand,
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> RESPValue {
        let replies = try await together([command], by: [], within: limit, lane: lane)
        if case .error(let text) = replies[0] { throw RedisError(reply: text, from: Self.address) }
        return replies[0]
    }

    func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> [RESPValue] {
        let waiter = Waiter()
        let order = Order(commands: commands.map(\.parsedWords), waiter: waiter)
        state.withLock { state in
            state.orders[lane, default: []].append(order)
            state.names += order.commands.map { String(decoding: $0[0], as: UTF8.self) }
            if let hold = state.hold, hold.lane == lane {
                if order.commands.contains(where: hold.isFirst) { state.isHolding = true }
                if state.isHolding { return }
            }
            run(lane, &state)
        }
        return try await waiter.outcome()
    }

    private func run(_ lane: RedisLane, _ state: inout State) {
        for order in state.orders.removeValue(forKey: lane) ?? [] {
            order.waiter.finish(.success(replies(to: order.commands, &state)))
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

/// One caller of a lane.
private final class Waiter: Sendable {
    typealias Outcome = Result<[RESPValue], RedisError>

    private enum State {
        case open
        case waiting(UnsafeContinuation<Outcome, Never>)
        case over(Outcome)
    }

    private let state = Mutex(State.open)

    func outcome() async throws(RedisError) -> [RESPValue] {
        let outcome = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let known = state.withLock { state -> Outcome? in
                    if case .over(let outcome) = state { return outcome }
                    state = .waiting(continuation)
                    return nil
                }
                if let known { continuation.resume(returning: known) }
            }
        } onCancel: {
            finish(.failure(RedisError(.cancelled, detail: "The caller was cancelled")))
        }
        return try outcome.get()
    }

    /// Only the first outcome counts.
    func finish(_ outcome: Outcome) {
        let continuation = state.withLock { state -> UnsafeContinuation<Outcome, Never>? in
            switch state {
            case .open:
                state = .over(outcome)
                return nil
            case .waiting(let continuation):
                state = .over(outcome)
                return continuation
            case .over: return nil
            }
        }
        continuation?.resume(returning: outcome)
    }
}
