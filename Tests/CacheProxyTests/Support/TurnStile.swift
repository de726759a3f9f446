import Dispatch

/// Blocks a thread until `pass()`, one thread per pass; every wait has a time limit.
final class TurnStile: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func pass() { semaphore.signal() }
    func wait() { _ = semaphore.wait(timeout: .now() + .seconds(WireSocket.limitSeconds)) }
}
