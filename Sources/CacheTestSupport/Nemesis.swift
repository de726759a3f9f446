import CacheEngine
import Platform
import Synchronization

/// The common part of `NemesisStore` and `NemesisOrigin`: a plan and the calls that hang.
final class Nemesis: Sendable {
    private struct State {
        var plan: NemesisPlan
        var random: SeededRandom
        var counts: [NemesisCall.Method: Int] = [:]
        var calls: [NemesisCall] = []
        var hung: [Int: UnsafeContinuation<Void, any Error>] = [:]
        var nextID = 0
    }

    /// The number of calls that are recorded; later calls are only counted.
    private static let callsMax = 100_000

    private let clock: any CacheClock
    private let state: Mutex<State>

    init(_ plan: NemesisPlan, _ clock: any CacheClock) {
        self.clock = clock
        state = Mutex(State(plan: plan, random: SeededRandom(seed: plan.seed)))
    }

    func follow(_ plan: NemesisPlan) {
        state.withLock {
            $0.plan = plan
            $0.random = SeededRandom(seed: plan.seed)
        }
    }

    var calls: [NemesisCall] { state.withLock { $0.calls } }
    var hungCount: Int { state.withLock { $0.hung.count } }

    func release() {
        let hung = state.withLock { state in
            defer { state.hung = [:] }
            return state.hung.sorted { $0.key < $1.key }
        }
        for (_, continuation) in hung { continuation.resume() }
    }

    /// Performs one call as the plan says.
    func perform<Result: Sendable>(
        _ method: NemesisCall.Method,
        _ subject: String,
        _ effect: () async throws -> Result,
        lying lie: (Misdeed.Lie, Result) async -> Result
    ) async throws -> Result {
        switch note(method, subject) {
        case .none: return try await effect()
        case .throwsBefore: throw Self.error(method, "before")
        case .throwsAfter:
            _ = try await effect()
            throw Self.error(method, "after")
        case .hangsBefore(let cancellation):
            try await hang(cancellation)
            return try await effect()
        case .hangsAfter(let cancellation):
            let result = try await effect()
            try await hang(cancellation)
            return result
        case .isSlow(let seconds):
            try await clock.sleep(nanoseconds: UInt64(nanosecondsIn: seconds))
            return try await effect()
        case .lies(let kind): return await lie(kind, try await effect())
        }
    }

    private static func error(_ method: NemesisCall.Method, _ moment: String) -> CacheError {
        CacheError(
            method == .fetch ? .originFailed : .storageFailed,
            detail: "\(method.rawValue) failed \(moment) its effect"
        )
    }

    private func note(_ method: NemesisCall.Method, _ subject: String) -> Misdeed {
        state.withLock { state in
            state.counts[method, default: 0] += 1
            let number = state.counts[method, default: 0]
            let call = NemesisCall(method: method, number: number, subject: subject)
            if state.calls.count < Self.callsMax { state.calls.append(call) }
            return state.plan.misdeed(call, &state.random)
        }
    }

    private func hang(_ cancellation: Misdeed.Cancellation) async throws {
        let id = state.withLock { state in
            state.nextID += 1
            return state.nextID
        }
        guard cancellation == .honoured else { return try await hang(id) { false } }
        try await withTaskCancellationHandler {
            try await hang(id) { Task.isCancelled }
        } onCancel: {
            let continuation = state.withLock { $0.hung.removeValue(forKey: id) }
            continuation?.resume(throwing: CancellationError())
        }
    }

    private func hang(_ id: Int, unless isCancelled: () -> Bool) async throws {
        try await withUnsafeThrowingContinuation { continuation in
            // Under the lock: either the cancellation is seen here, or it finds the continuation.
            let isOver = state.withLock { state in
                if isCancelled() { return true }
                state.hung[id] = continuation
                return false
            }
            if isOver { continuation.resume(throwing: CancellationError()) }
        }
    }
}
