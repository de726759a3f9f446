import Dispatch

/// Lets a blocked thread go on, one pass at a time; never blocks for ever.
final class TurnStile: Sendable {
    private let semaphore = DispatchSemaphore(value: 0)

    func pass() { semaphore.signal() }
    func wait() { _ = semaphore.wait(timeout: .now() + .seconds(WireSocket.limitSeconds)) }
}
