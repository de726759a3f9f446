import Synchronization

/// Limits the concurrent origin requests of one key; further requests queue.
///
/// Requests that were not collapsed must not open ten thousand connections.
///
/// Invariant: a request queues only while `perKeyMax` places of its lane are taken. An empty lane
/// does not exist.
final class OriginGate: Sendable {
    private typealias Line = WaitingLine<UnsafeContinuation<Bool, Never>>

    private struct Lane {
        var active = 0
        var line = Line()
    }

    private let perKeyMax: Int
    private let lanes = Mutex<[KeyHash: Lane]>([:])

    init(perKeyMax: Int) {
        self.perKeyMax = Mutant.opensTheGate.isOn ? .max : max(1, perKeyMax)
    }

    /// The number of keys with a request under way.
    var keyCount: Int { lanes.withLock { $0.count } }

    /// Returns once there is room; throws if the task is cancelled while it queues.
    nonisolated(nonsending) func enter(_ key: KeyHash) async throws {
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
                    assert(lanes[key]?.active == perKeyMax, "queues behind taken places only")
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

    /// Takes a place if there is room; returns whether there was.
    func takePlace(_ key: KeyHash) -> Bool {
        lanes.withLock { lanes in
            guard lanes[key, default: Lane()].active < perKeyMax else { return false }
            lanes[key, default: Lane()].active += 1
            return true
        }
    }

    /// Gives the place to the first request in the queue.
    func leave(_ key: KeyHash) {
        let next = lanes.withLock { lanes -> UnsafeContinuation<Bool, Never>? in
            // `active` keeps counting the place while it passes to the next request.
            if let next = lanes[key]?.line.popFirst() {
                assert(lanes[key]?.active == perKeyMax, "queues behind taken places only")
                return next
            }
            assert(lanes[key].map { $0.active > 0 } == true, "only a place that was taken")
            lanes[key]?.active -= 1
            if lanes[key]?.active == 0 { lanes[key] = nil }
            return nil
        }
        next?.resume(returning: true)
    }
}
