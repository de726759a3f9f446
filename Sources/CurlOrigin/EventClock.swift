import Platform

/// The time of the event loop, read from the clock once per step and reused until the next.
final class EventClock {
    private(set) var now = monotonicNanoseconds()

    func advance() { now = monotonicNanoseconds() }
}
