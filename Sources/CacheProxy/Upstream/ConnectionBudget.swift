import CurlOrigin
import Synchronization

/// How many connections to one host, and to all hosts, may be in use at once, over all event loops.
///
/// An exchange that finds none free waits in line; the end of another one grants it the permit. An
/// exchange that has left meanwhile gives the permit back when it gets it.
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
        var line: [Waiter] = []
        var first = 0

        var next: Waiter? { first < line.count ? line[first] : nil }

        mutating func takeWaiter() -> Waiter? {
            guard let next else { return nil }
            defer {
                first += 1
                if first == line.count {
                    line = []
                    first = 0
                } else if first >= 256, first * 2 > line.count {
                    line.removeFirst(first)
                    first = 0
                }
            }
            return next
        }
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
            state.hosts[host].line.append(waiter)
            state.waiterCount += 1
            state.nextNumber += 1
            return false
        }
    }

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
