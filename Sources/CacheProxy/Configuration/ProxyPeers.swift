/// The peers whose connections begin with a PROXY header: `10.0.0.0/8,::1,unix`.
///
/// A listener with such peers accepts connections from no other peer.
struct ProxyPeers: Hashable, Sendable {
    /// Networks in one list: each costs a comparison for every new connection.
    static let networksMax = 256

    private(set) var networks: [IPNetwork] = []
    /// Whether they may connect to a socket in the file system, whose permissions then decide.
    private(set) var includesUnix = false

    /// Reads the written form.
    init(parsing text: String) throws(ValueFault) {
        for item in text.split(separator: ",", omittingEmptySubsequences: false) {
            let name = item.trimmingPrefix { $0 == " " }
            if name == "unix" {
                includesUnix = true
            } else {
                networks.append(try IPNetwork(parsing: String(name)))
            }
        }
        guard networks.count <= Self.networksMax else {
            throw ValueFault(
                "the list has \(networks.count) networks",
                give: "at most \(Self.networksMax)"
            )
        }
    }

    /// Whether a connection from `peer` begins with a PROXY header; `nil` is the peer of a socket in
    /// the file system.
    func contains(_ peer: IPAddress?) -> Bool {
        if Mutant.believesAnyPeer.isOn { return true }
        guard let peer else { return includesUnix }
        return networks.contains { $0.contains(peer) }
    }
}
