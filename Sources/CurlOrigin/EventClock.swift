/// The time as of the event loop's last look at the clock; one look serves a whole turn.
final class EventClock {
    private(set) var now = monotonicNanoseconds()

    func advance() { now = monotonicNanoseconds() }
}
