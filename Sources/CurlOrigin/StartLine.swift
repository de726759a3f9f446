internal import CacheEngine

/// Which transfers may begin, so that the connections in use stay within their limits.
///
/// A transfer that has to wait is not given to libcurl yet. libcurl has one line for all hosts and
/// wakes only its first transfer, even if the connection that became free belongs to another host;
/// from version 8.8 on, it also takes the wait for an attempt to connect.
///
/// A connection of HTTP/2 carries many transfers. Those of such a host are not counted: libcurl's
/// own limits hold for its connections.
///
/// Only the event thread uses it.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `countedCount` and `waiterCount` are the sums over all hosts.
/// 2. A host is known exactly as long as it has transfers.
final class StartLine {
    /// Where a transfer stands.
    enum Place: Equatable {
        case waiting(ticket: Int)
        /// It has begun, and counts as a connection.
        case counted
        /// It has begun, on a host whose connections carry many transfers.
        case uncounted

        var hasBegun: Bool { self == .counted || self == .uncounted }
    }

    private struct Waiter {
        /// The number of transfers that began to wait before it, over all hosts.
        let number: UInt64
        let transfer: TransferID
    }

    private struct Host {
        var countedCount = 0
        var uncountedCount = 0
        var line = WaitingLine<Waiter>()
        var isMultiplexed = false

        var isIdle: Bool { countedCount + uncountedCount == 0 && line.isEmpty }
    }

    private let perHostMax: Int
    private let totalMax: Int
    private var hosts: [String: Host] = [:]
    private var countedCount = 0
    private(set) var waiterCount = 0
    private var nextNumber: UInt64 = 0
    /// Whether a transfer may have become able to begin since `next` found none.
    private var mayHaveNext = false

    init(_ limits: CurlConfiguration.Connections) {
        perHostMax = max(1, limits.maximumPerHost)
        totalMax = max(1, limits.maximumTotal)
    }

    /// Adds a transfer, which begins or waits.
    func enter(_ transfer: TransferID, for name: String) -> Place {
        var host = hosts[name] ?? Host()
        defer { checkInvariants() }
        guard host.line.isEmpty, hasRoom(host) else {
            let ticket = host.line.enter(Waiter(number: nextNumber, transfer: transfer))
            hosts[name] = host
            nextNumber += 1
            waiterCount += 1
            return .waiting(ticket: ticket)
        }
        return begin(&host, name)
    }

    /// Removes a transfer, wherever it stands.
    func leave(_ place: Place, for name: String) {
        guard var host = hosts[name] else { return }
        switch place {
        case .waiting(let ticket): if host.line.leave(ticket) != nil { waiterCount -= 1 }
        case .counted:
            host.countedCount -= 1
            countedCount -= 1
        case .uncounted: host.uncountedCount -= 1
        }
        hosts[name] = host.isIdle ? nil : host
        mayHaveNext = true
        checkInvariants()
    }

    /// Notes whether the host's connections carry many transfers, as a response has shown.
    func learn(isMultiplexed: Bool, of name: String) {
        guard let known = hosts[name]?.isMultiplexed, known != isMultiplexed else { return }
        hosts[name]?.isMultiplexed = isMultiplexed && !Mutant.countsTransfersOfOneConnection.isOn
        mayHaveNext = true
    }

    /// Whether the host's connections are known to carry many transfers.
    func isMultiplexed(_ name: String) -> Bool { hosts[name]?.isMultiplexed ?? false }

    /// Takes the transfer that has waited longest of those that may begin.
    func next() -> (transfer: TransferID, place: Place)? {
        guard waiterCount > 0, mayHaveNext else { return nil }
        var oldest: (name: String, number: UInt64)?
        for (name, host) in hosts where hasRoom(host) {
            guard let waiter = host.line.first?.element, waiter.number < oldest?.number ?? .max
            else { continue }
            oldest = (name, waiter.number)
        }
        guard let name = oldest?.name, var host = hosts[name], let waiter = host.line.popFirst()
        else {
            mayHaveNext = false
            return nil
        }
        waiterCount -= 1
        defer { checkInvariants() }
        return (waiter.transfer, begin(&host, name))
    }

    private func hasRoom(_ host: Host) -> Bool {
        host.isMultiplexed || host.countedCount < perHostMax && countedCount < totalMax
    }

    private func begin(_ host: inout Host, _ name: String) -> Place {
        if host.isMultiplexed {
            host.uncountedCount += 1
        } else {
            host.countedCount += 1
            countedCount += 1
        }
        hosts[name] = host
        return host.isMultiplexed ? .uncounted : .counted
    }

    private func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(countedCount == hosts.values.reduce(0) { $0 + $1.countedCount })
            precondition(waiterCount == hosts.values.reduce(0) { $0 + $1.line.count })
            precondition(hosts.values.allSatisfy { !$0.isIdle })
        #endif
    }
}
