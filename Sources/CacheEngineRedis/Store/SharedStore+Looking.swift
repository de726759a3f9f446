import CacheEngine
import RESP
import RedisClient
import Synchronization

extension SharedStore {
    /// The pauses between two looks for it, in milliseconds; the last one repeats.
    private static let pausesMilliseconds: [UInt64] = [5, 10, 20, 40, 50]

    func budget(startedNanoseconds: UInt64) -> SharedBudget {
        SharedBudget(
            startedNanoseconds: startedNanoseconds,
            spentNanosecondsMax: surroundings.patience.spentNanosecondsMax
        )
    }

    func look<Value: Sendable>(
        _ key: SharedKey,
        _ clock: any CacheClock,
        _ budget: inout SharedBudget,
        _ use: @Sendable (StoredEntry) -> Value?
    ) async -> SharedLook<Value> {
        guard let (name, hiddenNow) = nameAndHidden(key) else { return .alone(older: nil) }
        guard budget.isLeft else { return tooSlow(older: nil) }
        let waitMax = surroundings.patience.waitNanosecondsMax
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
                    clock.monotonicNanoseconds >= budget.startedNanoseconds + waitMax
                    && !Mutant.waitsForEveryLeader.isOn
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
