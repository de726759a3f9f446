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
        var perHostMax: Int
        var totalMax: Int
        var inUse = 0
        var waiterCount = 0
        var nextNumber: UInt64 = 0
        var hosts: [Host] = []

        init(_ limits: CurlConfiguration.Connections) {
            perHostMax = max(1, limits.maximumPerHost)
            totalMax = max(1, limits.maximumTotal)
        }

        mutating func give(_ host: Int) {
            inUse -= 1
            hosts[host].inUse -= 1
        }

        /// Takes a permit for the exchange that has waited longest, of the hosts with connections
        /// left.
        mutating func nextWaiter() -> Waiter? {
            guard waiterCount > 0, inUse < totalMax else { return nil }
            var oldest: Waiter?
            for host in hosts where host.inUse < perHostMax {
                guard let next = host.next, next.number < oldest?.number ?? .max else { continue }
                oldest = next
            }
            guard let oldest, let waiter = hosts[oldest.host].takeWaiter() else { return nil }
            waiterCount -= 1
            inUse += 1
            hosts[oldest.host].inUse += 1
            return waiter
        }
    }

    private let state: Mutex<State>

    init(_ limits: CurlConfiguration.Connections) { state = Mutex(State(limits)) }

    /// Changes the limits; permits above lower ones stay in use, and higher ones are granted at once.
    func setLimits(_ limits: CurlConfiguration.Connections) {
        state.withLock { state in
            let new = State(limits)
            (state.perHostMax, state.totalMax) = (new.perHostMax, new.totalMax)
        }
        while let next = state.withLock({ $0.nextWaiter() }) { grant(next) }
    }

    /// The place of a host, under which its permits are taken and given.
    ///
    /// A host keeps its place until the process ends; each host that any configuration has named
    /// has one.
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
            if state.inUse < state.totalMax, state.hosts[host].inUse < state.perHostMax {
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
            state.give(host)
            return state.nextWaiter()
        }
        if let next { grant(next) }
    }

    private func grant(_ next: Waiter) {
        let command = UpstreamCommand.granted(next.exchange, self, host: next.host)
        if !next.mailbox.post(.upstream(command)) { give(next.host) }
    }
}
