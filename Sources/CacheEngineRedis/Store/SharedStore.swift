import CacheEngine
import RESP
import RedisClient
import Synchronization

/// The entries of a fleet in Redis, one string for each, and the leases of those that are fetched.
final class SharedStore: SharedTier {
    /// How far two machines' readings of the fleet's time may lie apart: each is late by the delay
    /// of the server's replies.
    static let deviationMilliseconds: Int64 = 1_000

    struct State {
        var horizon = PurgeHorizon()
        var keys: StoreKeys?
        /// Whether something was changed here before the fleet's time was known.
        var hasChangedUntimed = false
        /// The leases of this machine that were not published under yet, by their keys.
        var leases: [SharedKey: Holding] = [:]
        var publications = PublicationQueue()
        /// Whether the purges of the log are being read.
        var isBeginning = false
        /// The times that purges may have been missed.
        var ends = 0
    }

    struct Holding {
        let token: [UInt8]
        /// Renews the lease.
        let renewal: Task<Void, Never>
    }

    let client: any FleetServer
    let surroundings: FleetSurroundings
    let time: FleetTime
    let counts: FleetCounts
    let state = Mutex(State())
    private let namespace: String

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
        // In one order, so that a simulated life is repeated exactly.
        let inOrder = leases.sorted { $0.key.bytes.lexicographicallyPrecedes($1.key.bytes) }
        for (_, lease) in inOrder { lease.renewal.cancel() }
        await client.shutDown()
    }
}

// MARK: - Purges

extension SharedStore {
    /// Whether the purges of the log are known.
    var isBegun: Bool { state.withLock { $0.horizon.log != nil } }

    /// Whether purges of this machine have no place in the log.
    var hasUnplacedPurges: Bool { state.withLock { !$0.horizon.unplaced.isEmpty } }

    /// Whether the purges of the log are being read.
    var isBeginning: Bool { state.withLock { $0.isBeginning } }

    /// Asks the caller to read the purges of the log, and to call `endBeginning`.
    ///
    /// The number is for `begin`; `nil` if the purges are known or are being read.
    func takeBeginning() -> Int? {
        state.withLock { state in
            guard state.horizon.log == nil, !state.isBeginning else { return nil }
            state.isBeginning = true
            return state.ends
        }
    }

    func endBeginning() { state.withLock { $0.isBeginning = false } }

    /// Begins to use records, with the purges of the log that came after `floor`, unless `end` was
    /// called since they were read.
    func begin(log: [UInt8], floor: UInt64, _ entries: [LogEntry], _ number: Int) {
        guard let now = time.now() else { return }
        state.withLock { state in
            guard state.ends == number else { return }
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
    func end() {
        state.withLock { state in
            state.horizon.end()
            state.ends += 1
        }
    }

    /// The log has these entries.
    func note(_ entries: [LogEntry]) {
        guard !entries.isEmpty else { return }
        state.withLock { state in
            for entry in entries { state.horizon.note(entry.scope, at: entry.position.rawValue) }
        }
    }

    func announce(_ purges: [SharedPurge]) { change(purges) { $0.announce($1) } }

    /// The number of purges that are about to be sent to the log together.
    func nextNumber() -> UInt64 { state.withLock { $0.horizon.nextNumber() } }

    /// The last of these numbers.
    var lastNumber: UInt64 { state.withLock { $0.horizon.numbers } }

    /// The log was read to its end by a question that was asked after the purges up to `number` had
    /// been sent.
    func noteEnd(at position: FleetPosition, _ number: UInt64) {
        state.withLock { $0.horizon.noteEnd(at: position, number) }
    }

    /// The log has taken purges of this machine, the last one at `position`.
    func confirm(_ purges: [SharedPurge], at position: UInt64, _ number: UInt64) {
        change(purges) { $0.confirm($1, at: position, number) }
    }

    /// The log has not confirmed purges of this machine.
    func fail(_ purges: [SharedPurge], _ number: UInt64) {
        change(purges) { $0.fail($1, number) }
    }

    private func change(
        _ purges: [SharedPurge],
        _ body: (inout PurgeHorizon, SharedPurge.Scope) -> Void
    ) {
        state.withLock { state in for purge in purges { body(&state.horizon, purge.scope) } }
    }
}

// MARK: - Names

extension SharedStore {
    func name(of key: SharedKey) -> StoreName? { nameAndHidden(key)?.name }

    /// The name of a record, and the moment by which it must not have been published; `nil` while
    /// no log is known.
    func nameAndHidden(_ key: SharedKey) -> (name: StoreName, hidden: Int64)? {
        let known = state.withLock { state in
            state.horizon.log == nil ? nil : state.keys.map { ($0, state.horizon.hidden(key)) }
        }
        return known.map { ($0.name(of: key), $1) }
    }
}

extension LogEntry {
    /// The entries that the purge concerns; a purge that a newer version wrote may concern any.
    fileprivate var scope: SharedPurge.Scope { purge?.purge.scope ?? .everything }
}
