/// The purges that this machine has appended and has not read back, the oldest first.
///
/// If the log's server is lost before a replica has them, this machine may be the only one that
/// knows them. The number is bounded: the oldest ones are forgotten.
///
/// Invariant: `known` has the purges of `order` that were not removed, with their numbers.
struct UnreadPurges: Sendable {
    private struct Item: Sendable {
        let number: UInt64
        let purge: FleetPurge

        var size: Int { purge.sizeBytes }
    }

    private let countMax: Int
    private let bytesMax: Int
    private var order: [Item] = []
    private var known: [FleetPurge.ID: Item] = [:]
    private var inserted: UInt64 = 0
    private var bytes = 0

    init(countMax: Int = 65_536, bytesMax: Int = 16 << 20) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    var count: Int { known.count }

    mutating func insert(_ purge: FleetPurge) {
        guard known[purge.id] == nil else { return }
        inserted += 1
        let item = Item(number: inserted, purge: purge)
        known[purge.id] = item
        bytes += item.size
        order.append(item)
        if known.count > countMax || bytes > bytesMax { forgetTheOldest() }
    }

    mutating func remove(_ id: FleetPurge.ID) {
        guard let item = known.removeValue(forKey: id) else { return }
        bytes -= item.size
        if order.count > 2 * known.count + 64 { compact() }
    }

    /// Takes all purges out.
    mutating func takeAll() -> [FleetPurge] {
        compact()
        defer { self = UnreadPurges(countMax: countMax, bytesMax: bytesMax) }
        return order.map(\.purge)
    }

    /// Forgets a quarter, so that the order is rewritten seldom.
    private mutating func forgetTheOldest() {
        compact()
        for item in order where known.count > countMax / 4 * 3 || bytes > bytesMax / 4 * 3 {
            known[item.purge.id] = nil
            bytes -= item.size
        }
        compact()
    }

    private mutating func compact() { order.removeAll { known[$0.purge.id]?.number != $0.number } }
}
