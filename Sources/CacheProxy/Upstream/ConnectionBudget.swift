import CurlOrigin
import Synchronization

/// How many connections to one host, and to all hosts, may be in use at once, over all event loops.
///
/// An exchange that finds none free waits in line; the end of another one grants it the permit. An
/// exchange that gives up leaves the line; if a permit is on its way to it, it is given back when it
/// arrives.
///
/// Invariants of a host's line:
/// 1. `waiting` has the exchanges of `line` from `first` on that have not left, and no others.
/// 2. The waiter at `first` has not left.
final class ConnectionBudget: Sendable {
    private struct Waiter {
        /// The number of waiters before it, over all hosts.
        let number: UInt64
        let host: Int
        let exchange: TransferID
        let mailbox: Mailbox
    }

    private struct Host {
        let name: String
        let port: Int
        var inUse = 0
        private(set) var line: [Waiter] = []
        private var first = 0
        private var waiting: Set<TransferID> = []

        /// Places of exchanges that have left, which are kept beside as many as there are waiters.
        private static let emptyPlacesMax = 256

        init(name: String, port: Int) {
            self.name = name
            self.port = port
        }

        var next: Waiter? { first < line.count ? line[first] : nil }

        mutating func append(_ waiter: Waiter) {
            line.append(waiter)
            waiting.insert(waiter.exchange)
        }

        mutating func takeWaiter() -> Waiter? {
            guard let next else { return nil }
            waiting.remove(next.exchange)
            tidy()
            return next
        }

        /// Returns whether the exchange was in line.
        mutating func leave(_ exchange: TransferID) -> Bool {
            guard waiting.remove(exchange) != nil else { return false }
            tidy()
            return true
        }

        /// Passes over the places of those that have left; removes them once they are most of the
        /// line, so that each one costs a constant time.
        private mutating func tidy() {
            while let next, !waiting.contains(next.exchange) { first += 1 }
            if waiting.isEmpty || line.count >= 2 * waiting.count + Self.emptyPlacesMax {
                line = line[first...].filter { waiting.contains($0.exchange) }
                first = 0
            }
            #if ENGINE_CHECKS
                checkInvariants()
            #endif
        }

        #if ENGINE_CHECKS
            /// Checks what costs little, because lines may be long.
            private func checkInvariants() {
                precondition(waiting.count <= line.count - first)
                precondition(next.map { waiting.contains($0.exchange) } ?? waiting.isEmpty)
            }
        #endif
    }

    private struct State {
        var inUse = 0
        var waiterCount = 0
        var nextNumber: UInt64 = 0
        var hosts: [Host] = []
    }

    private let perHostMax: Int
    private let totalMax: Int
    private let state = Mutex(State())

    init(perHostMax: Int, totalMax: Int) {
        self.perHostMax = max(1, perHostMax)
        self.totalMax = max(1, totalMax)
    }

    /// The place of a host, by which its permits are taken and given.
    func place(of name: String, _ port: Int) -> Int {
        state.withLock { state in
            let known = state.hosts.firstIndex { $0.name == name && $0.port == port }
            if let known { return known }
            state.hosts.append(Host(name: name, port: port))
            return state.hosts.count - 1
        }
    }

    /// Takes a permit, or a place in line; returns whether the permit is there.
    func take(_ host: Int, for exchange: TransferID, at mailbox: Mailbox) -> Bool {
        state.withLock { state in
            if state.inUse < totalMax, state.hosts[host].inUse < perHostMax {
                state.inUse += 1
                state.hosts[host].inUse += 1
                return true
            }
            let waiter = Waiter(
                number: state.nextNumber,
                host: host,
                exchange: exchange,
                mailbox: mailbox
            )
            state.hosts[host].append(waiter)
            state.waiterCount += 1
            state.nextNumber += 1
            return false
        }
    }

    /// Leaves the line: the exchange has ended without a permit.
    func leave(_ host: Int, _ exchange: TransferID) {
        state.withLock { state in
            if state.hosts[host].leave(exchange) { state.waiterCount -= 1 }
        }
    }

    /// The exchanges in line.
    var waiterCount: Int { state.withLock { $0.waiterCount } }
    /// The places in all lines, also those of exchanges that have left.
    var placeCount: Int { state.withLock { $0.hosts.reduce(0) { $0 + $1.line.count } } }

    /// Gives a permit back, and grants it to the next exchange in line.
    func give(_ host: Int) {
        let next = state.withLock { state in
            state.inUse -= 1
            state.hosts[host].inUse -= 1
            return Self.nextWaiter(&state, perHostMax)
        }
        guard let next else { return }
        let command = UpstreamCommand.granted(next.exchange, self, host: next.host)
        if !next.mailbox.post(.upstream(command)) { give(next.host) }
    }

    /// The exchange that has waited longest, of the hosts with connections left.
    private static func nextWaiter(_ state: inout State, _ perHostMax: Int) -> Waiter? {
        guard state.waiterCount > 0 else { return nil }
        var oldest: Waiter?
        for host in state.hosts where host.inUse < perHostMax {
            guard let next = host.next, next.number < oldest?.number ?? .max else { continue }
            oldest = next
        }
        guard let oldest, let waiter = state.hosts[oldest.host].takeWaiter() else { return nil }
        state.waiterCount -= 1
        state.inUse += 1
        state.hosts[oldest.host].inUse += 1
        return waiter
    }
}
