import CacheEngine
import RedisClient
import Synchronization

/// Appends the purges again that the log has lost, in a task of its own.
///
/// The reader does not wait for it: a batch waits behind the purges of all callers, and each exchange
/// may take a second. The purges of other machines are applied meanwhile.
final class PurgeRestorer: Sendable {
    /// The time between two attempts.
    private static let pauseNanoseconds: UInt64 = 250_000_000

    private struct State {
        var purges = LostPurges()
        var isBusy = false
        /// The moment of the next attempt.
        var resumption: UInt64 = 0
    }

    private let writer: PurgeLogWriter
    private let surroundings: FleetSurroundings
    private let counts: FleetCounts
    private let store: SharedStore?
    private let state = Mutex(State())

    init(
        _ writer: PurgeLogWriter,
        _ surroundings: FleetSurroundings,
        _ counts: FleetCounts,
        _ store: SharedStore?
    ) {
        self.writer = writer
        self.surroundings = surroundings
        self.counts = counts
        self.store = store
    }

    /// The log has lost purges.
    func add(_ purges: [FleetPurge]) {
        let new = state.withLock { $0.purges.add(purges) }
        // Records of a later server may have later places than these purges had.
        store?.announce(new.map(\.purge))
    }

    /// The reader has read these entries.
    func note(_ entries: [LogEntry]) {
        guard !entries.isEmpty else { return }
        let others = state.withLock { $0.purges.note(entries) }
        guard let store, !others.isEmpty else { return }
        // They were announced, and have their places now. A purge that failed here may be younger:
        // number 0 forgets the failure of none.
        var settled: Set<FleetPurge.ID> = []
        for entry in others {
            guard let purge = entry.purge, settled.insert(purge.id).inserted else { continue }
            store.confirm([purge.purge], at: entry.position.rawValue, 0)
        }
    }

    /// Takes the purges that the log has taken since the last call, and that were not read back.
    func takeTaken() -> [FleetPurge] { state.withLock { $0.purges.takeTaken() } }

    /// The log was read to its end: appends what is owed, unless that is under way.
    @discardableResult
    func start() -> Task<Void, Never>? {
        let now = surroundings.nowNanoseconds
        let isNeeded = state.withLock { state in
            guard !state.isBusy, !state.purges.isEmpty, now >= state.resumption else {
                return false
            }
            state.isBusy = true
            return true
        }
        return isNeeded ? surroundings.start { await self.work() } : nil
    }

    private func work() async {
        while let some = next() {
            let number = store?.nextNumber() ?? 0
            do throws(RedisError) {
                let receipt = try await writer.append(some)
                store?.confirm(some.map(\.purge), at: receipt.position, number)
                counts.restored.count(some.count)
                state.withLock { $0.purges.noteTaken() }
            } catch {
                let resumption = surroundings.nowNanoseconds + Self.pauseNanoseconds
                state.withLock { state in
                    state.purges.noteFailure()
                    state.resumption = resumption
                    state.isBusy = false
                }
                return
            }
        }
    }

    /// The next batch; without one the task ends.
    private func next() -> [FleetPurge]? {
        state.withLock { state in
            let next = state.purges.next()
            state.isBusy = next != nil
            return next
        }
    }
}
