import Synchronization

/// Lets a bounded number of origin requests of one key through at a time; the rest queue.
///
/// What was not collapsed must not become ten thousand connections.
///
/// Invariant: whoever queues does so because `active` places of the lane are taken; a lane without
/// anybody does not exist.
final class OriginGate: Sendable {
    private typealias Line = WaitingLine<UnsafeContinuation<Bool, Never>>

    private struct Lane {
        var active = 0
        var line = Line()
    }

    private let perKeyMax: Int
    private let lanes = Mutex<[KeyHash: Lane]>([:])

    init(perKeyMax: Int) { self.perKeyMax = max(1, perKeyMax) }

    /// How many keys have a request under way.
    var keyCount: Int { lanes.withLock { $0.count } }

    /// Returns once there is room; throws when the task is cancelled while it queues.
    func enter(_ key: KeyHash) async throws {
        guard !takePlace(key) else { return }
        let ticket = Mutex<Line.Ticket?>(nil)
        let mayGo = await withTaskCancellationHandler {
            await withUnsafeContinuation { continuation in
                let answer = lanes.withLock { lanes -> Bool? in
                    if Task.isCancelled { return false }
                    if lanes[key, default: Lane()].active < perKeyMax {
                        lanes[key, default: Lane()].active += 1
                        return true
                    }
                    let place = lanes[key, default: Lane()].line.enter(continuation)
                    ticket.withLock { $0 = place }
                    return nil
                }
                if let answer { continuation.resume(returning: answer) }
            }
        } onCancel: {
            let continuation = lanes.withLock { lanes in
                ticket.withLock { $0 }.flatMap { lanes[key]?.line.leave($0) }
            }
            continuation?.resume(returning: false)
        }
        if !mayGo { throw CancellationError() }
    }

    private func takePlace(_ key: KeyHash) -> Bool {
        lanes.withLock { lanes in
            guard lanes[key, default: Lane()].active < perKeyMax else { return false }
            lanes[key, default: Lane()].active += 1
            return true
        }
    }

    /// Gives the place to whoever came first.
    func leave(_ key: KeyHash) {
        let next = lanes.withLock { lanes -> UnsafeContinuation<Bool, Never>? in
            // The place is handed on as it is: `active` counts it all the while.
            if let next = lanes[key]?.line.popFirst() { return next }
            lanes[key]?.active -= 1
            if lanes[key]?.active == 0 { lanes[key] = nil }
            return nil
        }
        next?.resume(returning: true)
    }
}
