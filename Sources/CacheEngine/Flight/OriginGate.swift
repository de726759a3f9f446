import Synchronization

/// Lets a bounded number of origin requests of one key through at a time; the rest queue.
///
/// What was not collapsed must not become ten thousand connections.
final class OriginGate: Sendable {
    private struct Lane {
        var active = 0
        var queue: [(id: Int, continuation: UnsafeContinuation<Bool, Never>)] = []
    }

    private struct State {
        var lanes: [KeyHash: Lane] = [:]
        var nextID = 0
    }

    private let perKeyMax: Int
    private let state = Mutex(State())

    init(perKeyMax: Int) { self.perKeyMax = max(1, perKeyMax) }

    /// Runs `body` once there is room; throws when the task is cancelled while it queues.
    func pass<Result: Sendable>(
        _ key: KeyHash,
        _ body: () async throws -> Result
    ) async throws -> Result {
        try await enter(key)
        defer { leave(key) }
        return try await body()
    }

    func enter(_ key: KeyHash) async throws {
        let id = state.withLock { state -> Int? in
            if state.lanes[key, default: Lane()].active < perKeyMax {
                state.lanes[key, default: Lane()].active += 1
                return nil
            }
            state.nextID += 1
            return state.nextID
        }
        guard let id else { return }
        let mayGo = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = state.withLock { state -> Bool? in
                    if Task.isCancelled { return false }
                    if state.lanes[key, default: Lane()].active < perKeyMax {
                        state.lanes[key, default: Lane()].active += 1
                        return true
                    }
                    state.lanes[key]?.queue.append((id, continuation))
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let continuation = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
                guard let index = state.lanes[key]?.queue.firstIndex(where: { $0.id == id }) else {
                    return nil
                }
                return state.lanes[key]?.queue.remove(at: index).continuation
            }
            continuation?.resume(returning: false)
        }
        if !mayGo { throw CancellationError() }
    }

    func leave(_ key: KeyHash) {
        let next = state.withLock { state -> UnsafeContinuation<Bool, Never>? in
            guard var lane = state.lanes[key] else { return nil }
            var next: UnsafeContinuation<Bool, Never>?
            if lane.queue.isEmpty {
                lane.active -= 1
            } else {
                next = lane.queue.removeFirst().continuation
            }
            state.lanes[key] = lane.active == 0 ? nil : lane
            return next
        }
        next?.resume(returning: true)
    }
}
