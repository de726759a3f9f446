/// One table of the disk index: places sorted by identity, with gaps.
///
/// The table uses linear probing with the slots in the order of their hashes (ordered hash tables,
/// Amble and Knuth 1974, https://doi.org/10.1093/comjnl/17.2.135). A search ends at the first
/// larger hash, so a nearly full table is still fast, and resizing is one pass. The home of a hash
/// is proportional to the hash, so the table may have any size and grows in small steps.
///
/// Invariants:
/// 1. Occupied slots are in ascending order of their identities, all different.
/// 2. No slot lies before its home, and no slot between its home and itself is empty.
/// 3. `count` is the number of occupied slots, at most 7/8 of `capacity`.
///
/// `@unchecked Sendable`: the memory has one owner, this value, which cannot be copied.
struct IndexTable: ~Copyable, @unchecked Sendable {
    struct Slot {
        var identity: UInt64
        var place: RecordPlace
    }

    /// Slots after the last home, for runs that extend past it.
    private static let overflowSlots = 32
    private static let capacityMin = 8

    private var slots: UnsafeMutablePointer<Slot>
    private var capacity: Int
    private(set) var count = 0

    init(expectedCount: Int = 0) {
        capacity = Self.capacity(for: expectedCount)
        slots = Self.allocate(capacity)
    }

    deinit { slots.deallocate() }

    var allocatedBytes: Int { (capacity + Self.overflowSlots) * MemoryLayout<Slot>.stride }

    /// Returns the place of `identity`, or `.none`.
    func place(of identity: UInt64) -> RecordPlace {
        let index = position(of: identity)
        return index >= 0 ? slots[index].place : .none
    }

    /// Replaces the place of an identity; returns `false` if the identity has no place.
    mutating func replace(_ identity: UInt64, with place: RecordPlace) -> Bool {
        assert(!place.isNone)
        let index = position(of: identity)
        guard index >= 0 else { return false }
        slots[index].place = place
        return true
    }

    /// Sets the place of `identity` and returns the previous one, or `.none`.
    mutating func set(_ identity: UInt64, to place: RecordPlace) -> RecordPlace {
        assert(!place.isNone)
        if (count + 1) * 8 > capacity * 7 { resize(for: count + 1) }
        while true {
            var index = home(of: identity)
            while !slots[index].place.isNone && slots[index].identity < identity { index += 1 }
            if !slots[index].place.isNone && slots[index].identity == identity {
                let old = slots[index].place
                slots[index].place = place
                return old
            }
            assert(position(of: identity) < 0, "an identity stands once")
            var end = index
            while !slots[end].place.isNone { end += 1 }
            // The last slot stays empty, because it ends every search.
            guard end < capacity + Self.overflowSlots - 1 else {
                resize(for: capacity)
                continue
            }
            (slots + index + 1).update(from: slots + index, count: end - index)
            slots[index] = Slot(identity: identity, place: place)
            count += 1
            assert(position(of: identity) == index, "it is found where it was put")
            assert(count * 8 <= capacity * 7, "an eighth is free")
            return .none
        }
    }

    /// Removes `identity` and returns the place it had, or `.none`.
    mutating func remove(_ identity: UInt64) -> RecordPlace {
        let index = position(of: identity)
        guard index >= 0 else { return .none }
        let old = slots[index].place
        removeSlot(at: index)
        assert(position(of: identity) < 0, "it is found no more")
        if count * 2 < capacity && capacity > Self.capacityMin * 2 { resize(for: count) }
        return old
    }

    /// Removes every slot for which `isDead` returns `true`, which is asked in ascending order.
    mutating func removeAll(where isDead: (Slot) -> Bool) {
        var next = 0
        for index in 0..<capacity + Self.overflowSlots where !slots[index].place.isNone {
            let slot = slots[index]
            guard !isDead(slot) else {
                slots[index].place = .none
                count -= 1
                continue
            }
            next = max(next, home(of: slot.identity))
            if next < index {
                slots[next] = slot
                slots[index].place = .none
            }
            next += 1
        }
        if count * 2 < capacity && capacity > Self.capacityMin * 2 { resize(for: count) }
    }

    func forEach(_ visit: (Slot) -> Void) {
        for index in 0..<capacity + Self.overflowSlots where !slots[index].place.isNone {
            visit(slots[index])
        }
    }

    private func position(of identity: UInt64) -> Int {
        var index = home(of: identity)
        while !slots[index].place.isNone && slots[index].identity < identity { index += 1 }
        return !slots[index].place.isNone && slots[index].identity == identity ? index : -1
    }

    /// Scales the identity's lower 56 bits to the capacity; the upper 8 bits select the table.
    private func home(of identity: UInt64) -> Int {
        Int((identity << 8).multipliedFullWidth(by: UInt64(capacity)).high)
    }

    private mutating func removeSlot(at position: Int) {
        assert(!slots[position].place.isNone, "only an occupied slot is freed")
        var index = position
        while !slots[index + 1].place.isNone, home(of: slots[index + 1].identity) <= index {
            slots[index] = slots[index + 1]
            index += 1
        }
        slots[index].place = .none
        count -= 1
        assert(count >= 0)
    }

    private mutating func resize(for expected: Int) {
        var larger = Self.capacity(for: expected)
        while true {
            let fresh = Self.allocate(larger)
            if Self.move(slots, count: capacity + Self.overflowSlots, to: fresh, capacity: larger) {
                slots.deallocate()
                slots = fresh
                capacity = larger
                return
            }
            fresh.deallocate()
            larger += larger / 8 + 1
        }
    }

    /// Copies the occupied slots in order; returns `false` if the overflow is too small for the
    /// last run.
    private static func move(
        _ old: UnsafeMutablePointer<Slot>,
        count: Int,
        to new: UnsafeMutablePointer<Slot>,
        capacity: Int
    ) -> Bool {
        var next = 0
        for index in 0..<count where !old[index].place.isNone {
            let slot = old[index]
            let home = Int((slot.identity << 8).multipliedFullWidth(by: UInt64(capacity)).high)
            next = max(next, home)
            guard next < capacity + overflowSlots - 1 else { return false }
            new[next] = slot
            next += 1
        }
        return true
    }

    private static func capacity(for count: Int) -> Int { max(capacityMin, count * 9 / 7 + 1) }

    private static func allocate(_ capacity: Int) -> UnsafeMutablePointer<Slot> {
        let slots = UnsafeMutablePointer<Slot>.allocate(capacity: capacity + overflowSlots)
        slots.initialize(
            repeating: Slot(identity: 0, place: .none),
            count: capacity + overflowSlots
        )
        return slots
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            var (seen, last) = (0, UInt64?.none)
            var firstGap = 0
            for index in 0..<capacity + Self.overflowSlots {
                guard !slots[index].place.isNone else {
                    firstGap = index + 1
                    continue
                }
                let identity = slots[index].identity
                precondition(last.map { $0 < identity } ?? true, "1: order")
                let home = home(of: identity)
                precondition(home <= index && firstGap <= home, "2: home")
                (seen, last) = (seen + 1, identity)
            }
            precondition(seen == count && count <= capacity, "3: count")
        }
    #endif
}
