import CProxyShims
import Platform

/// Reports the readiness of many sockets to one thread.
final class Poller {
    static let eventsMax = 256
    /// The tokens of descriptors that are no connections.
    static let listenerToken = UInt64.max
    static let mailboxToken = UInt64.max - 1

    private let descriptor: Int32
    private let events: UnsafeMutablePointer<cp_event>

    init() throws(SystemError) {
        descriptor = cp_poller_open()
        events = .allocate(capacity: Self.eventsMax)
        if descriptor < 0 { throw SystemError(.watch) }
    }

    deinit {
        events.deallocate()
        if descriptor >= 0 { close(descriptor) }
    }

    /// Watches both directions until the socket is closed; every change is reported once.
    func watch(_ socket: Int32, token: UInt64) -> Bool {
        cp_poller_watch(descriptor, socket, token) == 0
    }

    /// Reports input in every wait until it is read.
    func watchInput(_ socket: Int32, token: UInt64) -> Bool {
        cp_poller_watch_input(descriptor, socket, token) == 0
    }

    func forget(_ socket: Int32) { _ = cp_poller_forget(descriptor, socket) }

    /// Waits, and returns the number of events.
    func wait(milliseconds: Int32) -> Int {
        max(0, Int(cp_poller_wait(descriptor, events, Int32(Self.eventsMax), milliseconds)))
    }

    subscript(index: Int) -> cp_event {
        precondition(index >= 0 && index < Self.eventsMax)
        return events[index]
    }
}
