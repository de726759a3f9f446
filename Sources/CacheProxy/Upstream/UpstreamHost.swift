import CacheEngine
import CurlOrigin

/// An origin's host and port on one event loop: its addresses and its idle connections.
///
/// Belongs to the thread of the loop.
final class UpstreamHost {
    /// Host and port of one origin's configuration.
    struct Name: Hashable, Sendable {
        /// The number of the origin, which a change of the configuration replaces.
        let origin: UInt64
        let host: String
        let port: Int

        var description: String { "\(host):\(port)" }
    }

    let name: Name
    /// Its place in the origin's budget of connections.
    let budget: Int
    /// The idle connections; the one used last is at the end.
    var idle: [UpstreamConnection] = []
    var addresses: [SocketAddress] = []
    /// Until then the addresses are used without another look-up.
    var addressesEnd = Int64.min
    /// The exchanges that wait for the addresses; `nil` if no look-up runs.
    var awaiting: [UpstreamExchange]?

    init(_ name: Name, budget: Int) {
        self.name = name
        self.budget = budget
    }

    /// The exchanges under way.
    var exchangeCount = 0

    /// Whether the loop may forget it.
    var isUnused: Bool { exchangeCount == 0 && idle.isEmpty && awaiting == nil }

    /// The time for which addresses are used.
    static let addressMilliseconds: Int64 = 60_000
}
