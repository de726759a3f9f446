internal import Synchronization

/// The connection of a client: its server, and the commands that it is for.
struct NodeKey: Hashable, Sendable {
    let address: NodeAddress
    let lane: RedisLane
    /// A sentinel gets no credentials.
    let isSentinel: Bool

    init(_ address: NodeAddress, _ lane: RedisLane = .data, isSentinel: Bool = false) {
        self.address = address
        self.lane = lane
        self.isSentinel = isSentinel
    }
}

/// One connection of a client, as its callers see it.
final class Node: Sendable {
    let key: NodeKey
    let admission: Mutex<CommandAdmission>

    init(_ key: NodeKey, _ options: RedisOptions) {
        self.key = key
        admission = Mutex(CommandAdmission(key.address, options))
    }
}
