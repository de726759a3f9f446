import Synchronization

/// The slots of one shard: a hash table of entries, readable without a lock.
///
/// A bucket is eight words, one cache line. A word is zero, or the top 16 bits of the key's identity
/// above the address of the entry. An entry whose bucket is full goes to a later one, and every
/// bucket that it passed counts it, as in F14
/// (https://engineering.fb.com/2019/04/25/developer-tools/f14/). A look-up continues while that
/// count is not zero. A removal leaves no marker.
///
/// Entries never move, so a reader finds a key iff it is in the table. Growing makes another table;
/// the old one stays unchanged until its last reader has left.
///
/// Invariants:
/// 1. A non-zero word owns one reference to its entry.
/// 2. `overflow[b]` is the number of entries that passed bucket `b`, or 255 once it has reached 255.
///
/// `@unchecked Sendable`: the header never changes, and everything else behind `base` is atomic.
struct EntryTable: @unchecked Sendable {
    static let bucketSlots = 8
    /// The most hits that a slot counts: the limit of a frequency.
    static let hitsMax: UInt8 = 15
    static let slotSizeBytes = 9

    /// The slab: 64 bytes of header with the bucket count, then words, hit counts, overflow counts.
    let base: UnsafeMutableRawPointer

    @inline(__always)
    var bucketCount: Int { base.load(as: Int.self) }
    @inline(__always)
    var slotCount: Int { bucketCount * Self.bucketSlots }
    /// The number of entries at which the table should grow.
    var entriesMax: Int { slotCount * 7 / 8 }

    static func sizeBytes(slotCount: Int) -> Int {
        headerBytes + slotCount * slotSizeBytes + slotCount / bucketSlots
    }

    /// The table whose `base` is this address.
    @inline(__always)
    init(base: UnsafeMutableRawPointer) { self.base = base }

    init(bucketCount: Int) {
        let slots = bucketCount * Self.bucketSlots
        let bytes = Self.sizeBytes(slotCount: slots)
        base = .allocate(byteCount: bytes, alignment: 64)
        // Zero bytes are atomics that hold zero.
        base.initializeMemory(as: UInt8.self, repeating: 0, count: bytes)
        base.storeBytes(of: bucketCount, as: Int.self)
    }

    /// Frees the table without releasing the references in its words.
    func deallocate() { base.deallocate() }

    @inline(__always)
    private var words: UnsafeMutablePointer<Atomic<UInt64>> {
        (base + Self.headerBytes).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    @inline(__always)
    private var hitCounts: UnsafeMutablePointer<Atomic<UInt8>> {
        (base + Self.headerBytes + slotCount * 8).assumingMemoryBound(to: Atomic<UInt8>.self)
    }

    @inline(__always)
    private var overflow: UnsafeMutablePointer<Atomic<UInt8>> {
        (base + Self.headerBytes + slotCount * 9).assumingMemoryBound(to: Atomic<UInt8>.self)
    }

    private static let headerBytes = 64

    // MARK: Reading, inside a gate

    /// The slot of the key, and its entry.
    @inline(__always)
    func find(_ hash: KeyHash, _ key: UnsafeRawBufferPointer) -> (Int, Unmanaged<ByteStorage>)? {
        var bucket = home(of: hash)
        let start = Self.firstSlot(of: hash)
        let tag = hash.identity >> 48
        for _ in 0..<bucketCount {
            let first = bucket &* Self.bucketSlots
            for step in 0..<Self.bucketSlots {
                let slot = first &+ (start &+ step) & (Self.bucketSlots &- 1)
                let word = (words + slot).pointee.load(ordering: .acquiring)
                guard word >> 48 == tag, let entry = Self.entry(in: word) else { continue }
                let isSame = entry._withUnsafeGuaranteedRef { $0.isEntry(hash, key) }
                if isSame { return (slot, entry) }
            }
            guard (overflow + bucket).pointee.load(ordering: .relaxed) != 0 else { return nil }
            bucket = next(after: bucket)
        }
        return nil
    }

    /// Counts a hit, and returns `true` if the count changed.
    ///
    /// Two concurrent hits may count as one. A hit may count for the entry that has just replaced
    /// the one that was read.
    @inline(__always)
    func countHit(_ slot: Int) -> Bool {
        let hits = (hitCounts + slot).pointee.load(ordering: .relaxed)
        guard hits < Self.hitsMax else { return false }
        (hitCounts + slot).pointee.store(hits + 1, ordering: .relaxed)
        return true
    }

    // MARK: Writing, under the shard's lock

    func hits(of slot: Int) -> Int { Int((hitCounts + slot).pointee.load(ordering: .relaxed)) }

    func setHits(of slot: Int, to hits: Int) {
        assert((0...Int(Self.hitsMax)).contains(hits), "a count that a slot can have")
        (hitCounts + slot).pointee.store(UInt8(hits), ordering: .relaxed)
    }

    func entry(at slot: Int) -> Unmanaged<ByteStorage>? {
        Self.entry(in: (words + slot).pointee.load(ordering: .relaxed))
    }

    /// The slot whose entry has this hash.
    ///
    /// The keys are not compared.
    func slot(of hash: KeyHash) -> Int? { slot(of: hash) { $0 == hash } }

    /// The slot whose entry has this identity, wherever it is placed.
    func slot(ofIdentity identity: UInt64) -> Int? {
        slot(of: KeyHash(placement: 0, identity: identity)) { $0.identity == identity }
    }

    @inline(__always)
    private func slot(of hash: KeyHash, where isMeant: (KeyHash) -> Bool) -> Int? {
        var bucket = home(of: hash)
        let start = Self.firstSlot(of: hash)
        for _ in 0..<bucketCount {
            let first = bucket * Self.bucketSlots
            for step in 0..<Self.bucketSlots {
                let slot = first + (start + step) % Self.bucketSlots
                let word = (words + slot).pointee.load(ordering: .relaxed)
                guard word >> 48 == hash.identity >> 48, let entry = Self.entry(in: word) else {
                    continue
                }
                if entry._withUnsafeGuaranteedRef({ isMeant($0.entryHash) }) { return slot }
            }
            guard (overflow + bucket).pointee.load(ordering: .relaxed) != 0 else { return nil }
            bucket = next(after: bucket)
        }
        return nil
    }

    /// Puts an entry into a free slot.
    ///
    /// The hash must be absent and the table not full.
    func insert(_ entry: Unmanaged<ByteStorage>, _ hash: KeyHash) -> Int {
        assert(slot(of: hash) == nil, "a hash stands once")
        var bucket = home(of: hash)
        let start = Self.firstSlot(of: hash)
        while true {
            let first = bucket * Self.bucketSlots
            for step in 0..<Self.bucketSlots {
                let slot = first + (start + step) % Self.bucketSlots
                guard (words + slot).pointee.load(ordering: .relaxed) == 0 else { continue }
                setHits(of: slot, to: 0)
                (words + slot).pointee.store(Self.word(entry, hash), ordering: .releasing)
                assert(self.slot(of: hash) == slot, "it is found where it was put")
                return slot
            }
            let passed = (overflow + bucket).pointee.load(ordering: .relaxed)
            if passed < .max { (overflow + bucket).pointee.store(passed + 1, ordering: .relaxed) }
            bucket = next(after: bucket)
        }
    }

    /// Replaces the entry in the slot by another of the same hash.
    func replace(_ slot: Int, by entry: Unmanaged<ByteStorage>, _ hash: KeyHash) {
        assert(self.slot(of: hash) == slot, "the slot has an entry of this hash")
        (words + slot).pointee.store(Self.word(entry, hash), ordering: .releasing)
    }

    func remove(_ slot: Int, _ hash: KeyHash) {
        assert(self.slot(of: hash) == slot, "the slot has an entry of this hash")
        (words + slot).pointee.store(0, ordering: .relaxed)
        var bucket = home(of: hash)
        while bucket != slot / Self.bucketSlots {
            let passed = (overflow + bucket).pointee.load(ordering: .relaxed)
            assert(passed > 0, "the entry was counted when it passed")
            if passed < .max { (overflow + bucket).pointee.store(passed - 1, ordering: .relaxed) }
            bucket = next(after: bucket)
        }
        assert(self.slot(of: hash) == nil, "it is found no more")
    }

    /// Puts every entry into `larger`, which is empty.
    ///
    /// Returns the new number of each slot, and `UInt32.max` for a free one.
    ///
    /// Goes through the buckets, which are in the order of the hashes: each table is read or written
    /// from its beginning to its end. Only the entries, whose heads hold the hashes, lie anywhere;
    /// the processor fetches those of a group at once.
    func copyAll(to larger: EntryTable) -> [UInt32] {
        assert(larger.bucketCount > bucketCount, "each entry finds a place")
        var newSlots = [UInt32](repeating: .max, count: slotCount)
        var hashes = InlineArray<32, KeyHash>(repeating: KeyHash(placement: 0, identity: 0))
        var start = 0
        while start < slotCount {
            let group = start..<min(start + hashes.count, slotCount)
            for slot in group {
                guard let entry = entry(at: slot) else { continue }
                hashes[slot - start] = entry._withUnsafeGuaranteedRef { $0.entryHash }
            }
            for slot in group {
                guard let entry = entry(at: slot) else { continue }
                let place = larger.insert(entry, hashes[slot - start])
                larger.setHits(of: place, to: hits(of: slot))
                newSlots[slot] = UInt32(place)
            }
            start = group.upperBound
        }
        return newSlots
    }

    private func next(after bucket: Int) -> Int { bucket &+ 1 == bucketCount ? 0 : bucket &+ 1 }

    /// The slot of a bucket at which a look-up begins, so that the first comparison usually succeeds.
    @inline(__always)
    private static func firstSlot(of hash: KeyHash) -> Int {
        Int(truncatingIfNeeded: hash.identity >> 32 & 7)
    }

    @inline(__always)
    private func home(of hash: KeyHash) -> Int {
        // The parentheses are needed: a shift binds more tightly than a product.
        Int(truncatingIfNeeded: ((hash.identity & 0xFFFF_FFFF) &* UInt64(bucketCount)) >> 32)
    }

    @inline(__always)
    private static func entry(in word: UInt64) -> Unmanaged<ByteStorage>? {
        guard let address = UnsafeRawPointer(bitPattern: UInt(word & addressMask)) else {
            return nil
        }
        return Unmanaged.fromOpaque(address)
    }

    private static let addressMask: UInt64 = (1 << 48) - 1

    private static func word(_ entry: Unmanaged<ByteStorage>, _ hash: KeyHash) -> UInt64 {
        let address = UInt64(UInt(bitPattern: entry.toOpaque()))
        precondition(address >> 48 == 0, "An address in user space must have at most 48 bits")
        let word = (hash.identity & ~addressMask) | address
        assert(Self.entry(in: word)?.toOpaque() == entry.toOpaque(), "reads as written")
        return word
    }
}

extension ByteStorage {
    /// The hash, read from the entry's head.
    @inline(__always)
    fileprivate var entryHash: KeyHash {
        let bytes = unsafeHead
        return KeyHash(
            placement: bytes.littleEndian(at: EntryHead.Offset.placement),
            identity: bytes.littleEndian(at: EntryHead.Offset.identity)
        )
    }

    /// Whether this is the entry for the key.
    ///
    /// Compares the whole hash, then every byte of the key.
    @inline(__always)
    fileprivate func isEntry(_ hash: KeyHash, _ key: UnsafeRawBufferPointer) -> Bool {
        let bytes = unsafeHead
        let placement = bytes.littleEndian(at: EntryHead.Offset.placement, as: UInt64.self)
        let identity = bytes.littleEndian(at: EntryHead.Offset.identity, as: UInt64.self)
        guard identity == hash.identity, placement == hash.placement else { return false }
        let counts = bytes.littleEndian(at: EntryHead.Offset.counts, as: UInt32.self)
        guard Int(counts & 0xFF_FFFF) == key.count else { return false }
        let rawCount = Int(bytes.littleEndian(at: EntryHead.Offset.rawCount, as: UInt32.self))
        let body = UnsafeRawPointer(bytes.baseAddress.unsafelyUnwrapped) + EntryHead.sizeBytes
        return (body + rawCount).hasSameBytes(as: key)
    }
}

extension UnsafeRawPointer {
    /// Whether the bytes from here on begin with `other`.
    ///
    /// Compares eight at a time.
    @inline(__always)
    fileprivate func hasSameBytes(as other: UnsafeRawBufferPointer) -> Bool {
        guard other.count >= 8 else { return hasSameFewBytes(as: other) }
        let theirs = UnsafeRawPointer(other.baseAddress.unsafelyUnwrapped)
        let last = other.count &- 8
        var offset = 0
        while offset < last {
            guard eightBytes(at: offset) == theirs.eightBytes(at: offset) else { return false }
            offset &+= 8
        }
        // The last eight overlap the ones before: cheaper than comparing single bytes.
        return eightBytes(at: last) == theirs.eightBytes(at: last)
    }

    @inline(__always)
    private func eightBytes(at offset: Int) -> UInt64 {
        loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    @inline(never)
    private func hasSameFewBytes(as other: UnsafeRawBufferPointer) -> Bool {
        for offset in 0..<other.count
        where load(fromByteOffset: offset, as: UInt8.self) != other[offset] { return false }
        return true
    }
}
