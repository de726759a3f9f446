public import CacheEngine
import Synchronization

/// A clock that only a test advances.
public final class TestClock: CacheClock {
    private struct Sleeper {
        let id: Int
        let wakesAtNanoseconds: UInt64
        let continuation: UnsafeContinuation<Void, any Error>
    }

    private struct State {
        var nanoseconds: UInt64 = 0
        var sleepers: [Sleeper] = []
        var nextID = 0
    }

    private let startSeconds: Int64
    private let state = Mutex(State())

    /// Creates a clock that shows `startSeconds` since 1970.
    public init(startSeconds: Int64 = 1_700_000_000) { self.startSeconds = startSeconds }

    /// The current time in seconds since 1970.
    public var nowSeconds: Int64 { startSeconds + Int64(monotonicNanoseconds / 1_000_000_000) }

    /// The nanoseconds by which the clock has been advanced.
    public var monotonicNanoseconds: UInt64 { state.withLock { $0.nanoseconds } }

    /// The number of tasks that sleep on this clock.
    public var sleeperCount: Int { state.withLock { $0.sleepers.count } }

    /// Advances the clock and wakes every task whose time has come.
    public func advance(seconds: Double) { advance(nanoseconds: UInt64(seconds * 1e9)) }

    /// Advances the clock to the next moment at which a task wakes, but by at most `seconds`.
    package func advanceToNextSleeper(within seconds: Double) {
        let next = state.withLock { state in
            state.sleepers.map(\.wakesAtNanoseconds).min().map { max($0, state.nanoseconds) }
                .map { $0 - state.nanoseconds }
        }
        advance(nanoseconds: min(next ?? .max, UInt64(seconds * 1e9)))
    }

    private func advance(nanoseconds: UInt64) {
        let woken = state.withLock { state in
            state.nanoseconds += nanoseconds
            let now = state.nanoseconds
            let woken = state.sleepers.filter { $0.wakesAtNanoseconds <= now }
            state.sleepers.removeAll { $0.wakesAtNanoseconds <= now }
            return woken
        }
        for sleeper in woken { sleeper.continuation.resume() }
    }

    /// Suspends until the clock has advanced by the given time.
    public func sleep(nanoseconds: UInt64) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        try await withTaskCancellationHandler {
            try await withUnsafeThrowingContinuation { continuation in
                let result = state.withLock { state -> Result<Void, any Error>? in
                    if Task.isCancelled { return .failure(CancellationError()) }
                    if nanoseconds == 0 { return .success(()) }
                    state.sleepers.append(
                        Sleeper(
                            id: id,
                            wakesAtNanoseconds: state.nanoseconds + nanoseconds,
                            continuation: continuation
                        )
                    )
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let sleeper = state.withLock { state -> Sleeper? in
                guard let index = state.sleepers.firstIndex(where: { $0.id == id }) else {
                    return nil
                }
                return state.sleepers.remove(at: index)
            }
            sleeper?.continuation.resume(throwing: CancellationError())
        }
    }
}
