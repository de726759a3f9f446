import Synchronization

@testable import CacheEngine

/// A relay that remembers what it was handed, and delivers what the test says.
final class ScriptedRelay: PurgeRelay {
    private struct State {
        var shared: [(purge: SharedPurge, isApplied: Bool)] = []
        var receiver: (any PurgeReceiver)?
        var failure: CacheError?
        var isShutDown = false
        var reach: FleetReach?
        var waited: [UInt64] = []
        var onAnnounce: (@Sendable ([SharedPurge]) -> Void)?
    }

    private let state = Mutex(State())
    let sharedTier: (any SharedTier)?

    init(sharing tier: (any SharedTier)? = nil) { sharedTier = tier }

    var fleet: Fleet { Fleet { self } }

    /// The purges that the cache handed over.
    var shared: [SharedPurge] { state.withLock { $0.shared.map(\.purge) } }
    /// Whether each was applied before.
    var areApplied: [Bool] { state.withLock { $0.shared.map(\.isApplied) } }
    var isShutDown: Bool { state.withLock { $0.isShutDown } }
    var receiver: (any PurgeReceiver)? { state.withLock { $0.receiver } }

    /// The positions of the receipts that were waited for.
    var waited: [UInt64] { state.withLock { $0.waited } }

    /// The machines that every purge reaches from now on.
    func reach(_ reach: FleetReach?) { state.withLock { $0.reach = reach } }

    func reach(of receipt: FleetReceipt) async -> FleetReach? {
        state.withLock { state in
            state.waited.append(receipt.position)
            return state.reach
        }
    }

    /// Refuses every purge from now on.
    func fail(_ error: CacheError) { state.withLock { $0.failure = error } }

    /// Calls `body` with the purges that are about to be applied.
    func onAnnounce(_ body: @escaping @Sendable ([SharedPurge]) -> Void) {
        state.withLock { $0.onAnnounce = body }
    }

    func announce(_ purges: [SharedPurge]) { state.withLock { $0.onAnnounce }?(purges) }

    func start(_ receiver: any PurgeReceiver) async {
        state.withLock { $0.receiver = receiver }
    }

    func share(_ purges: [SharedPurge], areApplied: Bool) async throws -> FleetReceipt {
        let (count, failure) = state.withLock { state in
            state.shared += purges.map { ($0, areApplied) }
            return (state.shared.count, state.failure)
        }
        if let failure { throw failure }
        return FleetReceipt(position: UInt64(count), replicas: 1, connectedReplicas: 2)
    }

    var statistics: FleetStatistics {
        var statistics = FleetStatistics()
        statistics.appended = shared.count
        return statistics
    }

    func shutDown() async { state.withLock { $0.isShutDown = true } }
}

extension PurgeReceiver {
    /// Applies a purge of another machine, and waits for the storage.
    func apply(_ purge: SharedPurge) async throws { try await apply(purge) {} }

    /// Marks all entries stale, and waits for the storage.
    func markEverythingStale() async throws { try await markEverythingStale {} }
}
