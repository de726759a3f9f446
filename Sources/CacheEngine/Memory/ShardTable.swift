/// The entries of one shard, evicted in S3-FIFO order (https://doi.org/10.1145/3600006.3613147).
///
/// Invariants:
/// 1. `usedBytes` is the sum of the slots' charges and never exceeds `capacityBytes`.
/// 2. Every slot is in one queue under its current ticket; other tickets in the queues are stale.
struct ShardTable: Sendable {
    struct Slot: Sendable {
        var entry: Entry
        var ticket: UInt64
        var chargeBytes: Int
        var hits: UInt8 = 0
        var isInSmall: Bool
    }

    private(set) var capacityBytes: Int
    private(set) var usedBytes = 0
    private var smallBytes = 0
    private var entrySizeBytesMax: Int
    private var pinnedBytesMax: Int
    private var pinnedBytes = 0
    private var slots: [KeyHash: Slot] = [:]
    private var small = TicketQueue<KeyHash>()
    private var main = TicketQueue<KeyHash>()
    private var ghost = TicketQueue<KeyHash>()
    private var ghostTickets: [KeyHash: UInt64] = [:]
    private var nextTicket: UInt64 = 0
    var counters = MemoryCounters()

    init(capacityBytes: Int, entrySizeBytesMax: Int, pinnedBytesMax: Int) {
        self.capacityBytes = capacityBytes
        self.entrySizeBytesMax = entrySizeBytesMax
        self.pinnedBytesMax = pinnedBytesMax
    }

    var count: Int { slots.count }
    var allHashes: [KeyHash] { Array(slots.keys) }

    /// The entry for the key, counted as a hit or a miss.
    mutating func find(_ hash: KeyHash, _ key: UnsafeRawBufferPointer, nowSeconds: UInt32)
        -> Entry?
    {
        guard let entry = peek(hash, key, nowSeconds: nowSeconds) else {
            counters.misses += 1
            return nil
        }
        counters.hits += 1
        if let hits = slots[hash]?.hits, hits < 3 { slots[hash]?.hits = hits + 1 }
        return entry
    }

    func peek(_ hash: KeyHash, _ key: UnsafeRawBufferPointer, nowSeconds: UInt32) -> Entry? {
        guard let slot = slots[hash], !slot.entry.isExpired(nowSeconds: nowSeconds),
            slot.entry.withKey({ $0.hasSameBytes(as: key) })
        else { return nil }
        return slot.entry
    }

    /// What is in the way of an entry with this hash, expired or not.
    func occupant(_ hash: KeyHash) -> Entry? { slots[hash]?.entry }

    func isTooLarge(_ entry: Entry) -> Bool {
        Self.chargeBytes(of: entry) > min(entrySizeBytesMax, capacityBytes)
    }

    /// Puts the entry in place; the caller has removed what was there.
    mutating func insert(_ entry: Entry, hash: KeyHash, evicting evicted: inout [Entry]) {
        let charge = Self.chargeBytes(of: entry)
        while usedBytes + charge > capacityBytes, evictOne(into: &evicted) {}
        precondition(usedBytes + charge <= capacityBytes)
        let isInSmall = ghostTickets.removeValue(forKey: hash) == nil
        nextTicket += 1
        slots[hash] = Slot(
            entry: entry,
            ticket: nextTicket,
            chargeBytes: charge,
            isInSmall: isInSmall
        )
        if isInSmall { small.append(hash, nextTicket) } else { main.append(hash, nextTicket) }
        account(slots[hash], sign: 1)
        counters.insertions += 1
    }

    mutating func remove(_ hash: KeyHash) -> Entry? {
        guard let slot = slots.removeValue(forKey: hash) else { return nil }
        account(slot, sign: -1)
        return slot.entry
    }

    mutating func remove(_ hashes: ArraySlice<KeyHash>, if isMeant: (Entry) -> Bool) -> [Entry] {
        hashes.compactMap { hash in
            guard let slot = slots[hash], isMeant(slot.entry) else { return nil }
            return remove(hash)
        }
    }

    mutating func setCapacity(
        _ bytes: Int,
        entrySizeBytesMax: Int,
        pinnedBytesMax: Int,
        evicting evicted: inout [Entry]
    ) {
        capacityBytes = bytes
        self.entrySizeBytesMax = entrySizeBytesMax
        self.pinnedBytesMax = pinnedBytesMax
        while usedBytes > capacityBytes, evictOne(into: &evicted) {}
    }

    /// What an entry costs: its allocation, rounded as malloc does, and its slot and queue places.
    static func chargeBytes(of entry: Entry) -> Int {
        (entry.sizeBytes + 24 + 8 + 15) / 16 * 16 + 160
    }

    private mutating func evictOne(into evicted: inout [Entry]) -> Bool {
        guard !slots.isEmpty else { return false }
        while true {
            let takesSmall = smallBytes * 10 >= usedBytes || main.isEmpty
            if takesSmall, let (hash, ticket) = small.popFirst() {
                guard var slot = slots[hash], slot.ticket == ticket else { continue }
                if slot.hits > 1 || isKept(slot) {
                    smallBytes -= slot.chargeBytes
                    slot.isInSmall = false
                    slot.hits = 0
                    slots[hash] = slot
                    main.append(hash, ticket)
                    continue
                }
                rememberGhost(hash)
                return evict(hash, into: &evicted)
            }
            guard let (hash, ticket) = main.popFirst() else { continue }
            guard var slot = slots[hash], slot.ticket == ticket else { continue }
            if slot.hits > 0 || isKept(slot) {
                slot.hits = slot.hits > 0 ? slot.hits - 1 : 0
                slots[hash] = slot
                main.append(hash, ticket)
                continue
            }
            return evict(hash, into: &evicted)
        }
    }

    private func isKept(_ slot: Slot) -> Bool {
        slot.entry.head.storageClass == .pinned && pinnedBytes <= pinnedBytesMax
            && pinnedBytes < usedBytes
    }

    private mutating func evict(_ hash: KeyHash, into evicted: inout [Entry]) -> Bool {
        guard let entry = remove(hash) else { return false }
        counters.evictions += 1
        counters.evictedBytes += entry.sizeBytes
        evicted.append(entry)
        return true
    }

    private mutating func rememberGhost(_ hash: KeyHash) {
        nextTicket += 1
        ghostTickets[hash] = nextTicket
        ghost.append(hash, nextTicket)
        while ghostTickets.count > slots.count, let (old, ticket) = ghost.popFirst() {
            if ghostTickets[old] == ticket { ghostTickets[old] = nil }
        }
    }

    private mutating func account(_ slot: Slot?, sign: Int) {
        guard let slot else { return }
        usedBytes += sign * slot.chargeBytes
        if slot.isInSmall { smallBytes += sign * slot.chargeBytes }
        if slot.entry.head.storageClass == .pinned { pinnedBytes += sign * slot.chargeBytes }
    }
}

/// A first-in-first-out queue of tickets.
struct TicketQueue<Name: Sendable>: Sendable {
    private var places: [(Name, UInt64)?] = []
    private var start = 0

    var isEmpty: Bool { start == places.count }

    mutating func append(_ name: Name, _ ticket: UInt64) { places.append((name, ticket)) }

    mutating func popFirst() -> (Name, UInt64)? {
        guard start < places.count else { return nil }
        let first = places[start]
        places[start] = nil
        start += 1
        if start > 64, start * 2 > places.count {
            places.removeFirst(start)
            start = 0
        }
        return first
    }
}
