import CacheEngine
import CacheTestSupport
import Synchronization

@testable import CacheEngineRedis

/// A cache that notes the purges of other machines; a test holds its storage back.
final class ModelReceiver: PurgeReceiver {
    private struct State {
        var purges: [SharedPurge] = []
        var doubts = 0
        var kept: [Bookmark] = []
        var failures: [String] = []
        var isHeld = false
        var waiting: [Race<Void>] = []
    }

    private let state = Mutex(State())

    /// The purges that hold.
    var applied: [SharedPurge] { state.withLock { $0.purges } }
    /// How often everything was doubted.
    var doubts: Int { state.withLock { $0.doubts } }
    /// The bookmarks that were written.
    var kept: [Bookmark] { state.withLock { $0.kept } }
    /// The failures of the fleet that were reported.
    var failures: [String] { state.withLock { $0.failures } }

    /// The operations that wait for the storage.
    var waitingCount: Int { state.withLock { $0.waiting.count } }

    /// The storage answers nothing until `confirm`.
    func hold() { state.withLock { $0.isHeld = true } }

    /// The storage answers the oldest operations, or all, and those to come.
    func confirm(_ count: Int? = nil, isDurable: Bool = true) {
        let answered = state.withLock { state in
            if count == nil { state.isHeld = false }
            let answered = state.waiting.prefix(count ?? .max)
            state.waiting.removeFirst(answered.count)
            return answered
        }
        let failure = CacheError(.storageFailed, detail: "The test lets it fail")
        for race in answered { race.finish(isDurable ? .success(()) : .failure(failure)) }
    }

    /// Waits for the storage.
    private func settle() async throws {
        let race = state.withLock { state -> Race<Void>? in
            guard state.isHeld else { return nil }
            let race = Race<Void>()
            state.waiting.append(race)
            return race
        }
        try await race?.result()
    }

    var mayHoldOlderEntries: Bool { false }

    func apply(_ purge: SharedPurge, whenApplied: () -> Void) async throws {
        state.withLock { $0.purges.append(purge) }
        whenApplied()
        try await settle()
    }

    func note(position: UInt64) {}

    func markEverythingStale(whenApplied: () -> Void) async throws {
        state.withLock { $0.doubts += 1 }
        whenApplied()
        try await settle()
    }

    func bookmark() async -> [UInt8]? { nil }

    func keep(bookmark: [UInt8]) async throws {
        try await settle()
        state.withLock { $0.kept += Bookmark(bookmark).map { [$0] } ?? [] }
    }

    func report(_ event: CacheEvent) {
        guard case .fleetFailed(let error) = event else { return }
        state.withLock { $0.failures.append("\(error)") }
    }
}
