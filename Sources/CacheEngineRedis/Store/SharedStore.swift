import CacheEngine
import RESP
import RedisClient
import Synchronization

/// The entries of a fleet in Redis, one string for each, and the leases of those that are fetched.
final class SharedStore: SharedTier {
    /// The time that a request spends at most on waiting for another machine's response.
    private static let waitNanoseconds: UInt64 = 2_000_000_000
    /// The pauses between two looks for it, in milliseconds; the last one repeats.
    private static let pausesMilliseconds: [UInt64] = [5, 10, 20, 40, 50]
    /// The life of a lease that is not renewed.
    private static let leaseMilliseconds = 3_000
    /// The number of times that a lease is renewed, once a second.
    private static let renewalsMax = 60
    /// The time for which a response that is for one client is not waited for again.
    private static let unshareableMilliseconds = 5_000
    /// The time for which a forgotten record cannot come back.
    private static let forgottenMilliseconds = 10_000
    /// The time for which a change that Redis did not confirm hides the records of its key.
    private static let unconfirmedMilliseconds: Int64 = 60_000
    /// How far two machines' readings of the fleet's time may lie apart: each is late by the delay
    /// of the server's replies.
    private static let deviationMilliseconds: Int64 = 1_000

    private struct State {
        var horizon = PurgeHorizon()
        var keys: StoreKeys?
        /// Whether something was changed here before the fleet's time was known.
        var hasChangedUntimed = false
        /// The leases of this machine that were not published under yet, by their keys.
        var leases: [SharedKey: Holding] = [:]
    }

    private struct Holding {
        let token: [UInt8]
        /// Renews the lease.
        let renewal: Task<Void, Never>
    }

    private let client: any FleetServer
    private let surroundings: FleetSurroundings
    private let namespace: String
    private let time: FleetTime
    private let counts: FleetCounts
    private let state = Mutex(State())

    init(
        _ client: any FleetServer,
        namespace: String,
        _ surroundings: FleetSurroundings,
        _ time: FleetTime,
        _ counts: FleetCounts
    ) {
        self.client = client
        self.namespace = namespace
        self.surroundings = surroundings
        self.time = time
        self.counts = counts
    }

    var isSuspended: Bool { client.isSuspended }
    var serverCounts: RedisCounts { client.counts }

    func shutDown() async {
        let leases = state.withLock { state in
            defer { state.leases = [:] }
            return state.leases
        }
        for lease in leases.values { lease.renewal.cancel() }
        await client.shutDown()
    }
}

// MARK: - Purges

extension SharedStore {
    /// Whether the purges of the log are known.
    var isBegun: Bool { state.withLock { $0.horizon.log != nil } }

    /// Begins to use records, with the purges of the log that came after `floor`.
    func begin(log: [UInt8], floor: UInt64, _ entries: [LogEntry]) {
        guard let now = time.now() else { return }
        state.withLock { state in
            if state.hasChangedUntimed {
                state.horizon.endEverything(at: now + Self.deviationMilliseconds)
            }
            state.hasChangedUntimed = false
            state.keys = StoreKeys(namespace: namespace, log: log)
            state.horizon.begin(
                log: log,
                floor: floor,
                entries.map { ($0.scope, $0.position.rawValue) }
            )
        }
    }

    /// Purges may have been missed: no record is used until `begin`.
    func end() { state.withLock { $0.horizon.end() } }

    /// The log has these entries.
    func note(_ entries: [LogEntry]) {
        guard !entries.isEmpty else { return }
        state.withLock { state in
            for entry in entries { state.horizon.note(entry.scope, at: entry.position.rawValue) }
        }
    }

    func announce(_ purges: [SharedPurge]) { change(purges) { $0.announce($1) } }

    /// The log has taken purges of this machine, the last one at `position`.
    func confirm(_ purges: [SharedPurge], at position: UInt64) {
        change(purges) { $0.confirm($1, at: position) }
    }

    /// The log has not confirmed purges of this machine.
    func fail(_ purges: [SharedPurge]) { change(purges) { $0.fail($1) } }

    private func change(
        _ purges: [SharedPurge],
        _ body: (inout PurgeHorizon, SharedPurge.Scope) -> Void
    ) {
        state.withLock { state in for purge in purges { body(&state.horizon, purge.scope) } }
    }
}

// MARK: - Looking

extension SharedStore {
    func look<Value: Sendable>(
        _ key: SharedKey,
        _ clock: any CacheClock,
        _ budget: inout SharedBudget,
        _ use: @Sendable (StoredEntry) -> Value?
    ) async -> SharedLook<Value> {
        guard let (name, hiddenNow) = nameAndHidden(key) else { return .alone(older: nil) }
        guard budget.isLeft else { return tooSlow(older: nil) }
        var token: [UInt8] = []
        do throws(RedisError) {
            var hidden = hiddenNow
            let begun = clock.monotonicNanoseconds
            let reply = try await client.send(RESPCommand("GET", key: name.record))
            budget.spend(clock.monotonicNanoseconds - begun)
            var older = entry(reply, key, hidden, clock)
            if let value = older.flatMap(use) { return found(value) }
            guard budget.isLeft else { return tooSlow(older: older) }
            token = FleetPurge.ID.random().bytes
            for attempt in 0... {
                hidden = self.hidden(key)
                let begun = clock.monotonicNanoseconds
                let replies = try await client.together(asking(name, token), by: name.record)
                if attempt == 0 { budget.spend(clock.monotonicNanoseconds - begun) }
                for case .error(let text) in replies {
                    throw RedisError(.misbehaved, detail: text)
                }
                let isOwn = replies[0].text == "OK"
                if let entry = entry(replies[1], key, hidden, clock) {
                    if let value = use(entry) {
                        if isOwn { release(name, token, .free) }
                        return found(value)
                    }
                    older = entry
                }
                if isOwn {
                    counts.sharedMisses.count()
                    return .lead(hold(key, name, token), older: older)
                }
                // The key was given up for a while, or its response is waited for long enough.
                let isGivenUp = replies[2].bytes == [UInt8(ascii: "!")]
                let isOver =
                    clock.monotonicNanoseconds >= budget.startedNanoseconds + Self.waitNanoseconds
                guard !isGivenUp, !isOver, !Task.isCancelled else {
                    counts.sharedMisses.count()
                    return .alone(older: older)
                }
                if attempt == 0 { counts.sharedWaits.count() }
                try? await clock.sleep(nanoseconds: pause(attempt))
            }
        } catch {
            counts.sharedFailures.count()
            // The lease may be this machine's, although the reply is missing.
            if !token.isEmpty { release(name, token, .free) }
        }
        return .alone(older: nil)
    }

    /// Asks for the lease, the record, and the holder of the lease.
    private func asking(_ name: StoreName, _ token: [UInt8]) -> [RESPCommand] {
        let key = name.lease
        var lease = RESPCommand("SET", key: key)
        lease.add(token)
        lease.add("NX")
        lease.add("PX")
        lease.add(Self.leaseMilliseconds)
        return [lease, RESPCommand("GET", key: name.record), RESPCommand("GET", key: key)]
    }

    /// A pause in nanoseconds, a quarter more or less.
    private func pause(_ attempt: Int) -> UInt64 {
        let pauses = Self.pausesMilliseconds
        return pauses[min(attempt, pauses.count - 1)] * surroundings.random(750_000...1_250_000)
    }

    private func name(of key: SharedKey) -> StoreName? { nameAndHidden(key)?.name }

    /// The name of a record, and the moment by which it must not have been published; `nil` while
    /// no log is known.
    private func nameAndHidden(_ key: SharedKey) -> (name: StoreName, hidden: Int64)? {
        let known = state.withLock { state in
            state.horizon.log == nil ? nil : state.keys.map { ($0, state.horizon.hidden(key)) }
        }
        return known.map { ($0.name(of: key), $1) }
    }

    private func hidden(_ key: SharedKey) -> Int64 {
        state.withLock { $0.horizon.hidden(key) }
    }

    /// The server has answered, too slowly for another command.
    private func tooSlow<Value>(older: StoredEntry?) -> SharedLook<Value> {
        counts.sharedFailures.count()
        return .alone(older: older)
    }

    private func found<Value>(_ value: Value) -> SharedLook<Value> {
        counts.sharedHits.count()
        return .found(value)
    }

    /// The entry of a reply to GET, if it may be used.
    private func entry(
        _ reply: RESPValue,
        _ key: SharedKey,
        _ hidden: Int64,
        _ clock: any CacheClock
    ) -> StoredEntry? {
        guard let bytes = reply.bytes, let now = time.now() else { return nil }
        guard let record = SharedRecord(bytes) else {
            counts.sharedUnreadable.count()
            return nil
        }
        let epoch = counts.readEpoch.load(ordering: .acquiring)
        let isPermitted = state.withLock {
            $0.horizon.permits(record, of: key, hidden: hidden, epoch: epoch)
        }
        guard isPermitted else { return nil }
        return record.entry(nowSeconds: clock.nowSeconds, fleetMilliseconds: now)
    }
}

// MARK: - Leases

extension SharedStore {
    private func hold(_ key: SharedKey, _ name: StoreName, _ token: [UInt8]) -> SharedLease {
        let clock = surroundings.clock
        let renewal = surroundings.start { [weak self] in
            for _ in 0..<Self.renewalsMax {
                guard (try? await clock.sleep(nanoseconds: 1_000_000_000)) != nil, let self else {
                    return
                }
                let words = [
                    token, Array(LeaseStep.keep.rawValue.utf8),
                    StoreStep.word(Self.leaseMilliseconds),
                ]
                _ = try? await self.client.run([StoreStep(.lease, name, words)], by: name.record)
            }
        }
        let before = state.withLock { state in
            state.leases.updateValue(Holding(token: token, renewal: renewal), forKey: key)
        }
        before?.renewal.cancel()
        return SharedLease(key: key, token: token)
    }

    /// Takes the lease of a key, if this machine holds it.
    private func take(_ key: SharedKey, _ token: [UInt8]? = nil) -> [UInt8]? {
        let lease = state.withLock { state -> Holding? in
            guard let lease = state.leases[key], token == nil || token == lease.token else {
                return nil
            }
            state.leases[key] = nil
            return lease
        }
        lease?.renewal.cancel()
        return lease?.token
    }

    func end(_ lease: SharedLease, _ ending: SharedLease.Ending) {
        guard let token = take(lease.key, lease.token), let name = name(of: lease.key) else {
            return
        }
        release(name, token, ending == .failed ? .free : .skip)
    }

    /// The words of the script `lease`.
    private enum LeaseStep: String {
        case keep, free, skip
    }

    private func release(_ name: StoreName, _ token: [UInt8], _ step: LeaseStep) {
        let words = [
            token, Array(step.rawValue.utf8), StoreStep.word(Self.unshareableMilliseconds),
        ]
        surroundings.start { [self] in
            _ = try? await client.run([StoreStep(.lease, name, words)], by: name.record)
        }
    }
}

// MARK: - Writing

extension SharedStore {
    func publish(_ copies: [SharedCopy]) {
        guard let first = copies.first else { return }
        // Without a log the entry is not copied, and an older record stays hidden.
        guard let (mark, log) = hide(first.key), let log, let name = name(of: first.key),
            let now = time.now()
        else { return counts.unpublished.count() }
        let tokens = copies.map { take($0.key) ?? [] }
        surroundings.start { [self] in
            var steps: [StoreStep] = []
            for (copy, token) in zip(copies, tokens) {
                let record = SharedRecord(
                    copy.entry,
                    position: copy.position,
                    publishedMilliseconds: now,
                    storedSeconds: copy.nowSeconds,
                    log: log
                ).encoded
                guard let record, let name = self.name(of: copy.key) else { continue }
                let lifetime = StoreStep.word(jittered(copy.lifetimeSeconds))
                let mayReplace = StoreStep.word(copy.mayReplace ? 1 : 0)
                steps.append(StoreStep(.publish, name, [token, record, lifetime, mayReplace]))
            }
            // The log was lost meanwhile.
            guard !steps.isEmpty else { return counts.unpublished.count() }
            do throws(RedisError) {
                let replies = try await client.run(steps, by: name.record)
                let isWritten = replies.allSatisfy { $0.integer == 1 }
                if isWritten { counts.published.count() } else { counts.unpublished.count() }
                state.withLock { $0.horizon.unmark(mark) }
            } catch {
                counts.unpublished.count()
                for (copy, token) in zip(copies, tokens) where !token.isEmpty {
                    if let name = self.name(of: copy.key) { release(name, token, .free) }
                }
            }
        }
    }

    func forget(_ key: SharedKey) {
        guard let (mark, _) = hide(key, isEnd: true), let name = name(of: key) else { return }
        _ = take(key)
        let words = [StoreStep.word(Self.forgottenMilliseconds)]
        surroundings.start { [self] in
            guard (try? await client.run([StoreStep(.forget, name, words)], by: name.record)) != nil
            else {
                return
            }
            state.withLock { $0.horizon.unmark(mark) }
        }
    }

    /// Hides the older records of a key until Redis confirms a change, and those of its resource for
    /// ever if it ends; returns the log that is known.
    ///
    /// Returns `nil` if the fleet's time is not known yet: then no record is used, and none of today
    /// will be.
    private func hide(
        _ key: SharedKey,
        isEnd: Bool = false
    ) -> (mark: PurgeHorizon.Mark, log: [UInt8]?)? {
        let now = time.now()
        return state.withLock { state in
            guard let now else {
                state.hasChangedUntimed = true
                return nil
            }
            if isEnd { state.horizon.end(key.resource, at: now + Self.deviationMilliseconds) }
            let until = now + Self.unconfirmedMilliseconds
            return (state.horizon.mark(key.bytes, until: until), state.horizon.log)
        }
    }

    func forgetEverything() {
        let now = time.now()
        state.withLock { state in
            if let now {
                state.horizon.endEverything(at: now + Self.deviationMilliseconds)
            } else {
                state.hasChangedUntimed = true
            }
        }
    }

    /// A lifetime in milliseconds, up to a twentieth less: records of one moment end one by one.
    private func jittered(_ seconds: Int) -> Int {
        let milliseconds = seconds * 1_000
        return max(1, milliseconds - Int(surroundings.random(0...UInt64(milliseconds / 20))))
    }
}

extension LogEntry {
    /// The entries that the purge concerns; a purge that a newer version wrote may concern any.
    fileprivate var scope: SharedPurge.Scope { purge?.purge.scope ?? .everything }
}
