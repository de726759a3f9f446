import CacheEngine
import CurlOrigin
import HTTPCaching
import Platform

/// An origin's host and port on one event loop: its addresses and its idle connections.
///
/// Belongs to the thread of the loop.
final class UpstreamHost {
    /// Host and port, and the budget of the connections to them.
    ///
    /// Origins with one budget share their connections: those of before a change of the
    /// configuration are used on, and the limits hold for all of them.
    struct Name: Hashable, Sendable {
        let budget: ObjectIdentifier
        let host: String
        let port: Int

        /// Whether it is the name of the host of `call`, as the URL spells it.
        func isHost(of call: UpstreamCall) -> Bool {
            guard port == call.url.port, budget == ObjectIdentifier(call.origin.budget) else {
                return false
            }
            return call.request.url.withByteRun { url in
                host.withByteRun { $0.equals(url[call.url.host]) }
            }
        }

        var description: String { "\(host):\(port)" }
    }

    let name: Name
    /// Held as long as its identity is part of the name.
    private let budget: ConnectionBudget
    /// Its place in the budget.
    let place: Int
    /// The idle connections; the one used last is at the end.
    var idle: [UpstreamConnection] = []
    var addresses: [SocketAddress] = []
    /// Until then the addresses are used without another look-up.
    var addressesEnd = Int64.min
    /// Until then the addresses are used if a look-up fails.
    private var addressesForgotten = Int64.min
    /// Before then no look-up begins that no exchange waits for.
    private var nextRenewal = Int64.min
    /// The exchanges that wait for the addresses, also those that have ended; `nil` if no look-up
    /// runs.
    var awaiting: [TransferID]?

    init(_ host: String, port: Int, budget: ConnectionBudget) {
        name = Name(budget: ObjectIdentifier(budget), host: host, port: port)
        self.budget = budget
        place = budget.place(of: host, port)
    }

    /// The exchanges under way.
    var exchangeCount = 0

    /// Whether the loop may forget it.
    func isUnused(now: Int64) -> Bool {
        exchangeCount == 0 && idle.isEmpty && awaiting == nil && now >= addressesForgotten
    }

    /// A look-up has found these addresses.
    func found(_ addresses: [SocketAddress], now: Int64) {
        self.addresses = addresses
        addressesEnd = now + Self.addressMilliseconds
        addressesForgotten = now + Self.keptMilliseconds
    }

    /// Whether a look-up is due that no exchange waits for, because kept connections serve them all;
    /// the caller begins it.
    func beginsRenewal(now: Int64) -> Bool {
        guard awaiting == nil, now >= max(addressesEnd, nextRenewal) else { return false }
        nextRenewal = now + Self.retryMilliseconds
        return !Mutant.keepsToOldAddresses.isOn
    }

    /// A connection to `address` was made, so it is tried first until the next look-up: no other
    /// exchange waits for an address before it that does not respond.
    func prefer(_ address: SocketAddress) {
        guard let place = addresses.firstIndex(of: address), place > 0,
            !Mutant.triesDeadAddressesFirst.isOn
        else { return }
        addresses.remove(at: place)
        addresses.insert(address, at: 0)
    }

    /// Whether the known addresses are used if a look-up fails or takes long.
    func mayUseOldAddresses(now: Int64) -> Bool { !addresses.isEmpty && now < addressesForgotten }

    /// A look-up has failed or takes long: the addresses are used for a while before the next one.
    func keepAddresses(now: Int64) { addressesEnd = now + Self.retryMilliseconds }

    /// The time for which addresses are used.
    static let addressMilliseconds: Int64 = 60_000
    /// The time for which old addresses are used before another look-up.
    static let retryMilliseconds: Int64 = 5_000
    /// The time for which addresses are used after the look-up that found them.
    static let keptMilliseconds: Int64 = 3_600_000
}
