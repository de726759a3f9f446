internal import RESP

/// The master of every slot.
struct ClusterMap: Hashable, Sendable {
    /// A cluster of more masters is refused; Redis advises against more than 1,000 servers.
    static let mastersMax = 1_024
    private static let unassigned = UInt16.max

    private(set) var masters: [NodeAddress] = []
    /// The place in `masters` of each slot.
    private var owners = [UInt16](repeating: Self.unassigned, count: KeySlot.count)

    init() {}

    /// Reads the reply to CLUSTER SLOTS of the server at `address`; `nil` if it has another form or
    /// no slot.
    init?(_ reply: RESPValue, from address: NodeAddress) {
        guard let ranges = reply.elements, !ranges.isEmpty else { return nil }
        for range in ranges {
            guard let parts = range.elements, parts.count >= 3,
                let first = parts[0].integer, let last = parts[1].integer,
                0 <= first, first <= last, last < KeySlot.count,
                let master = Self.address(parts[2], askedAt: address),
                let place = place(of: master)
            else { return nil }
            for slot in Int(first)...Int(last) { owners[slot] = place }
        }
    }

    private static func address(_ server: RESPValue, askedAt own: NodeAddress) -> NodeAddress? {
        guard let parts = server.elements, parts.count >= 2, let port = parts[1].integer,
            let port = UInt16(exactly: port), port > 0
        else { return nil }
        // A server that does not know its own address names none; `?` stands for an unknown name.
        let host = parts[0].text ?? ""
        return NodeAddress(host: host.isEmpty || host == "?" ? own.host : host, port: port)
    }

    private mutating func place(of master: NodeAddress) -> UInt16? {
        if let known = masters.firstIndex(of: master) { return UInt16(known) }
        guard masters.count < Self.mastersMax else { return nil }
        masters.append(master)
        return UInt16(masters.count - 1)
    }

    subscript(slot: UInt16) -> NodeAddress? {
        let place = owners[Int(slot)]
        return place == Self.unassigned ? nil : masters[Int(place)]
    }

    /// A redirection named the master of one slot.
    mutating func move(_ slot: UInt16, to master: NodeAddress) {
        if let place = place(of: master) { owners[Int(slot)] = place }
    }
}
