import Synchronization

/// The state that a shard's lock guards: the slots, the policy's queues over them, and the counts.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. A slot holds an entry iff it is in one queue of the policy.
/// 2. `count` is the number of slots that hold an entry.
///
/// `@unchecked Sendable`: owned by the shard's mutex and touched only inside it.
struct MemoryShardState: ~Copyable, @unchecked Sendable {
    /// Answers the policy from the entries themselves.
    struct Facts: SlotFacts {
        let table: EntryTable

        func identity(of slot: Int) -> UInt64 { entry(slot).head.hash.identity }
        func chargeBytes(of slot: Int) -> Int { entry(slot).chargeBytes }
        func hits(of slot: Int) -> Int { table.hits(of: slot) }
        func isOfPinnedClass(_ slot: Int) -> Bool { entry(slot).head.storageClass == .pinned }
        func setHits(of slot: Int, to hits: Int) { table.setHits(of: slot, to: hits) }

        private func entry(_ slot: Int) -> Entry {
            // The policy asks only about slots in its queues, which hold an entry (invariant 1).
            Entry(unchecked: table.entry(at: slot).unsafelyUnwrapped.takeUnretainedValue())
        }
    }

    private(set) var table: EntryTable
    private(set) var policy: SizeAwarePolicy
    private(set) var count = 0
    var counters = MemoryCounters()

    init(bucketCount: Int, shared: SharedPolicyState) {
        table = EntryTable(bucketCount: bucketCount)
        policy = SizeAwarePolicy(slotCount: table.slotCount, shared: shared)
    }

    static func sizeBytes(bucketCount: Int) -> Int {
        let slots = bucketCount * EntryTable.bucketSlots
        return EntryTable.sizeBytes(slotCount: slots) + SizeAwarePolicy.sizeBytes(slotCount: slots)
    }

    var sizeBytes: Int { Self.sizeBytes(bucketCount: table.bucketCount) }
    var isFull: Bool { count >= table.entriesMax }
    /// The size to grow to.
    ///
    /// The steps are small, because a free slot costs as much as a used one.
    var nextBucketCount: Int { table.bucketCount + max(8, table.bucketCount / 12) }

    func entry(at slot: Int) -> Entry? {
        table.entry(at: slot).map { Entry(unchecked: $0.takeUnretainedValue()) }
    }

    /// Links an entry.
    ///
    /// Its hash must be absent and the table not full.
    mutating func insert(_ entry: Entry, _ hash: KeyHash, isPinned: Bool) {
        precondition(!isFull)
        assert(entry.head.hash == hash, "linked under its own hash")
        let slot = table.insert(Unmanaged.passRetained(entry.storage), hash)
        let charge = entry.chargeBytes
        count += 1
        policy.insert(slot, chargeBytes: charge, isPinned: isPinned, Facts(table: table))
        checkInvariants()
    }

    /// Replaces the entry in `slot` by another of the same hash, and returns the old reference.
    ///
    /// A pinned entry stays exempt if the one before was, as the pinned share has its bytes already.
    mutating func replace(
        _ slot: Int,
        by entry: Entry,
        _ hash: KeyHash,
        isPinned: Bool
    ) -> Unmanaged<ByteStorage> {
        assert(entry.head.hash == hash, "linked under its own hash")
        let old = table.entry(at: slot).unsafelyUnwrapped
        let oldEntry = Entry(unchecked: old.takeUnretainedValue())
        let (oldCharge, charge) = (oldEntry.chargeBytes, entry.chargeBytes)
        table.replace(slot, by: Unmanaged.passRetained(entry.storage), hash)
        let staysPinned = entry.head.storageClass == .pinned && policy.isPinned(slot)
        policy.replace(
            slot,
            oldChargeBytes: oldCharge,
            chargeBytes: charge,
            isPinned: isPinned || staysPinned,
            Facts(table: table)
        )
        checkInvariants()
        return old
    }

    /// Unlinks the entry in `slot` and returns its reference.
    mutating func remove(_ slot: Int) -> Unmanaged<ByteStorage> {
        let reference = table.entry(at: slot).unsafelyUnwrapped
        let entry = Entry(unchecked: reference.takeUnretainedValue())
        policy.remove(slot, chargeBytes: entry.chargeBytes)
        table.remove(slot, entry.head.hash)
        count -= 1
        assert(count >= 0)
        checkInvariants()
        return reference
    }

    /// Moves all entries to a larger table and returns the old one.
    mutating func grow(bucketCount: Int) -> EntryTable {
        let old = table
        let new = EntryTable(bucketCount: bucketCount)
        assert(new.entriesMax > count, "all entries find a place")
        let movedCount = policy.grow(slotCount: new.slotCount, old.copyAll(to: new))
        assert(movedCount == count, "each entry is in one queue, and moves once")
        table = new
        checkInvariants()
        return old
    }

    /// Requeues the next slot of the part if it has hits, or names it as the victim.
    mutating func next(
        in part: EvictionPart,
        against rival: Double?,
        mayRequeue: MayRequeue
    ) -> EvictionStep {
        policy.next(in: part, against: rival, mayRequeue: mayRequeue, Facts(table: table))
    }

    /// The rank of the slot that would be evicted first, or infinity if the part is empty.
    mutating func rank(of part: EvictionPart) -> Double { policy.rank(of: part) }

    mutating func noteRefusal(of identity: UInt64) {
        counters.refusals += 1
        policy.noteUse(of: identity)
    }

    mutating func noteUse(of identity: UInt64) { policy.noteUse(of: identity) }

    /// How often the entry of this identity was requested of late; 0 if it is not here.
    mutating func requests(of identity: UInt64) -> Int {
        table.slot(ofIdentity: identity).map { policy.frequency(of: $0, Facts(table: table)) } ?? 0
    }

    /// The use of the key's entry, or of the key alone; `nil` if the counts must fade first.
    ///
    /// That would take a reader too long.
    mutating func use(of hash: KeyHash) -> EntryUse? {
        guard policy.isSketchCurrent else { return nil }
        guard let slot = table.slot(of: hash) else {
            return EntryUse(frequency: policy.frequency(ofAbsent: hash.identity), isFull: false)
        }
        return EntryUse(
            frequency: policy.frequency(of: slot, Facts(table: table)),
            isFull: table.hits(of: slot) == EntryTable.hitsMax
        )
    }

    /// Whether the next victim of the main part is worth as much as a newcomer of that worth.
    mutating func wouldDefend(against rival: SizeAwarePolicy.Worth) -> Bool {
        policy.wouldDefend(against: rival, Facts(table: table))
    }

    mutating func worth(ofNew identity: UInt64, chargeBytes: Int) -> SizeAwarePolicy.Worth {
        policy.worth(ofNew: identity, chargeBytes: chargeBytes)
    }

    mutating func priority(ofNew identity: UInt64, chargeBytes: Int) -> Double {
        policy.priority(ofNew: identity, chargeBytes: chargeBytes)
    }

    /// Exempts the slot from eviction, if it may be.
    mutating func exempt(_ slot: Int) -> Bool { policy.exempt(slot, Facts(table: table)) }

    /// Whether the entry of this hash is exempt from eviction.
    func isPinned(_ hash: KeyHash) -> Bool {
        table.slot(of: hash).map { policy.isPinned($0) } ?? false
    }

    /// Ends the exemption of the entry that has had it for longest, unless it was hit since.
    mutating func yieldPinned() { policy.yieldPinned(Facts(table: table)) }

    mutating func settleCandidate() { policy.settleCandidate(Facts(table: table)) }

    mutating func candidate() -> (slot: Int, priority: Double)? {
        policy.candidate(Facts(table: table))
    }

    mutating func frequencySum(ofFirst bytes: Int, sumMax: Int) -> Int {
        policy.frequencySum(ofFirst: bytes, sumMax: sumMax, Facts(table: table))
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            guard count < 64 else { return }
            var found = 0
            for slot in 0..<table.slotCount {
                guard let entry = entry(at: slot) else { continue }
                found += 1
                precondition(table.slot(of: entry.head.hash) == slot)
            }
            precondition(found == count)
        #endif
    }
}
