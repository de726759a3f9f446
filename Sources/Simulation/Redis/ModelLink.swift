import CacheEngine
import CacheEngineRedis
import CacheTestSupport
import RESP
import RedisClient
import Synchronization

/// The connection of one machine to a model of Redis, with the faults of a network.
final class ModelLink: ModelServer {
    /// The faults of one exchange, as their numbers in a thousand, and its delays.
    struct Weather: Sendable {
        var lostRequests = 0
        var lostReplies = 0
        /// Requests that the server performs after the caller has given up.
        var lateRequests = 0
        /// Exchanges that take up to `delayMilliseconds`.
        var slow = 0
        var delayMilliseconds = 20
        /// A write reaches the replica at once in one of so many cases.
        var replicatedOneIn = 1
    }

    private enum Fate: Hashable {
        case fine, lostRequest, lostReply, lateRequest
    }

    private struct State {
        var isDead = false
        var isCut = false
        var generation: Int
        var followsDeposed = false
        var failures = 0
        var suspendedUntil: UInt64 = 0
    }

    private let redis: ModelRedis
    private let clock: any CacheClock
    private let executor: SeededExecutor
    private let dice: Dice
    private let defaultLimit: UInt64
    private let weather: Weather
    /// Notes the purges that the machine reads; `nil` for a connection to the shared store.
    private let witness: LogWitness?
    private let state: Mutex<State>

    init(
        _ redis: ModelRedis,
        _ clock: any CacheClock,
        _ executor: SeededExecutor,
        _ dice: Dice,
        _ weather: Weather,
        defaultLimit: UInt64,
        witness: LogWitness?
    ) {
        self.redis = redis
        self.clock = clock
        self.executor = executor
        self.dice = dice
        self.weather = weather
        self.defaultLimit = defaultLimit
        self.witness = witness
        state = Mutex(State(generation: redis.generation))
    }

    // MARK: Control by the life

    /// The machine's process has ended.
    func kill() {
        state.withLock { $0.isDead = true }
        redis.wakeReaders()
    }

    /// Whether the machine is cut off from the servers.
    func cut(_ isCut: Bool) {
        state.withLock { $0.isCut = isCut }
        redis.wakeReaders()
    }

    /// After a failover, this connection stays with the old master.
    func followDeposed() { state.withLock { $0.followsDeposed = true } }

    // MARK: As a machine sees it

    var isSuspended: Bool {
        let now = clock.monotonicNanoseconds
        return state.withLock { $0.suspendedUntil > now }
    }

    /// The model counts nothing.
    var counts: RedisCounts { RedisCounts() }

    func shutDown() async { kill() }

    func post(
        _ command: RESPCommand,
        within limit: Duration,
        lane: RedisLane,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        executor.start { [self] in
            do throws(RedisError) {
                follow(.success(try await send(command, within: limit, lane: lane)))
            } catch { follow(.failure(error)) }
        }
    }

    func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> [RESPValue] {
        let now = clock.monotonicNanoseconds
        let deadline = now + (limit.map(Self.nanoseconds) ?? defaultLimit)
        if isSuspended { throw Self.failure(.suspended) }
        let words = commands.map(\.parsedWords)
        witness?.asks(words)
        do throws(RedisError) {
            let replies = try await exchange(words, until: deadline)
            state.withLock { $0.failures = 0 }
            for (reply, words) in zip(replies, words)
            where words[0] != Array("XRANGE".utf8) || replies.count == 1 {
                witness?.hears(reply)
            }
            return replies
        } catch {
            // A breaker opens after five failures in a row.
            state.withLock { state in
                state.failures += 1
                guard state.failures >= 5 else { return }
                state.failures = 0
                state.suspendedUntil = clock.monotonicNanoseconds + 250_000_000
            }
            throw error
        }
    }

    private static func nanoseconds(_ limit: Duration) -> UInt64 {
        let (seconds, attoseconds) = limit.components
        guard seconds >= 0, attoseconds >= 0 else { return 0 }
        // No life lasts for so many seconds, and sums stay in range.
        let whole = UInt64(min(seconds, 1_000_000_000)) * 1_000_000_000
        return whole + UInt64(attoseconds / 1_000_000_000)
    }

    private static func failure(_ code: RedisError.Code) -> RedisError {
        RedisError(code, detail: "The model is \(code)")
    }
}

// MARK: - One exchange

extension ModelLink {
    private func exchange(
        _ words: [[[UInt8]]],
        until deadline: UInt64
    ) async throws(RedisError) -> [RESPValue] {
        try checkConnection()
        let fate = fate()
        switch fate {
        case .fine, .lostReply: break
        case .lostRequest: throw await giveUp(deadline)
        case .lateRequest:
            let delay = UInt64(dice.below(4_000)) * 1_000_000
            let generation = redis.generation
            executor.start { [self] in
                try? await clock.sleep(nanoseconds: delay)
                // The bytes wait at one server, and are lost with it.
                guard redis.generation == generation else { return }
                for words in words { _ = redis.run(words) }
            }
            throw await giveUp(deadline)
        }
        await dawdle()
        var replies: [RESPValue] = []
        for words in words {
            if !replies.isEmpty, dice.oneIn(2) { await Task.yield() }
            try checkConnection()
            replies.append(try await perform(words, until: deadline))
        }
        await dawdle()
        try checkConnection()
        if fate == .lostReply { throw await giveUp(deadline) }
        guard clock.monotonicNanoseconds <= deadline else { throw Self.failure(.timedOut) }
        return replies
    }

    private func fate() -> Fate {
        let number = dice.below(1_000)
        var bound = weather.lostRequests
        if number < bound { return .lostRequest }
        bound += weather.lostReplies
        if number < bound { return .lostReply }
        bound += weather.lateRequests
        return number < bound ? .lateRequest : .fine
    }

    /// The connection ends now, or nothing arrives until the deadline.
    private func giveUp(_ deadline: UInt64) async -> RedisError {
        if dice.oneIn(2) { return Self.failure(.cut) }
        let now = clock.monotonicNanoseconds
        if deadline > now { try? await clock.sleep(nanoseconds: deadline - now) }
        return Self.failure(.timedOut)
    }

    private func dawdle() async {
        for _ in 0..<dice.below(3) { await Task.yield() }
        guard weather.slow > 0, dice.below(1_000) < weather.slow else { return }
        let milliseconds = 1 + dice.below(weather.delayMilliseconds)
        try? await clock.sleep(nanoseconds: UInt64(milliseconds) * 1_000_000)
    }

    /// - Throws: `RedisError` if the connection is closed; a later one may be open.
    private func checkConnection() throws(RedisError) {
        let (generation, hasDeposed) = (redis.generation, redis.hasDeposed)
        let code = state.withLock { state -> RedisError.Code? in
            if state.isDead { return .shutDown }
            if state.isCut { return .unreachable }
            guard state.generation < generation else { return nil }
            if state.followsDeposed, hasDeposed { return nil }
            (state.generation, state.followsDeposed) = (generation, false)
            return .cut
        }
        if let code { throw Self.failure(code) }
    }

    private func perform(
        _ words: [[UInt8]],
        until deadline: UInt64
    ) async throws(RedisError) -> RESPValue {
        let texts = words.prefix(5).map { String(decoding: $0, as: UTF8.self) }
        if texts[0] == "WAIT" { return try await replicas(texts) }
        var onDeposed = state.withLock { $0.followsDeposed }
        guard texts[0] == "XREAD", let place = texts.firstIndex(of: "BLOCK"),
            let milliseconds = UInt64(texts[place + 1])
        else {
            let reply = redis.run(words, onDeposed: onDeposed)
            if dice.oneIn(weather.replicatedOneIn) { redis.replicate() }
            return reply
        }
        let plain = Array(words[..<place] + words[(place + 2)...])
        let now = clock.monotonicNanoseconds
        let end = min(deadline, now + milliseconds * 1_000_000)
        while true {
            let reply = redis.run(plain, onDeposed: onDeposed)
            let now = clock.monotonicNanoseconds
            guard reply == .nilArray, now < end, !Task.isCancelled else { return reply }
            await redis.waitForEntry(end - now, on: executor)
            try checkConnection()
            onDeposed = state.withLock { $0.followsDeposed }
        }
    }

    /// The reply to WAIT: the replicas that have what this connection wrote.
    private func replicas(_ texts: [String]) async throws(RedisError) -> RESPValue {
        if state.withLock({ $0.followsDeposed }) { return .integer(0) }
        let isWaiting = texts[1] != "0"
        if isWaiting, !dice.oneIn(weather.replicatedOneIn) {
            try? await clock.sleep(nanoseconds: 50_000_000)
            try checkConnection()
        }
        guard dice.oneIn(weather.replicatedOneIn) else { return .integer(0) }
        redis.replicate()
        return .integer(1)
    }
}
