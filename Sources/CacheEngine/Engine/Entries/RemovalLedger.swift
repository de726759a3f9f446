import Synchronization

/// Remembers what was removed lately, so that a fetch which began before a removal does not bring
/// back what the removal took away.
///
/// A fetch takes a ticket when it starts; its result may be stored while nothing that covers it has
/// been removed since. The slots are shared by hash: a collision forbids a store that was allowed,
/// never the other way round.
///
/// `@unchecked Sendable`: the slots are atomics in memory that lives as long as the object.
final class RemovalLedger: @unchecked Sendable {
    struct Ticket: Sendable {
        fileprivate let sequence: UInt64
        /// What an attempt of a flight stores with besides.
        var licence: FlightLicence?
    }

    private static let slotsCount = 4_096

    private let sequence = Atomic<UInt64>(1)
    private let everything = Atomic<UInt64>(0)
    private let anyTag = Atomic<UInt64>(0)
    private let slots: UnsafeMutablePointer<Atomic<UInt64>>

    init() {
        slots = .allocate(capacity: Self.slotsCount)
        for index in 0..<Self.slotsCount { (slots + index).initialize(to: Atomic(0)) }
    }

    deinit {
        slots.deinitialize(count: Self.slotsCount)
        slots.deallocate()
    }

    func ticket() -> Ticket { Ticket(sequence: sequence.load(ordering: .acquiring)) }

    /// A resource was removed, with its variants.
    func note(_ key: KeyHash) { raise(slots[Self.slot(key.placement)]) }

    /// What carries the tag was removed.
    func note(tag: UnsafeRawBufferPointer) {
        raise(slots[Self.slot(tag: tag)])
        raise(anyTag)
    }

    /// A removal that no key or tag describes.
    func noteEverything() { raise(everything) }

    /// Whether an entry fetched since `ticket` may be stored.
    ///
    /// Asked inside the key's critical
    /// section, so that a removal is either seen here or comes after the store.
    func permits(_ key: KeyHash, tags: UnsafeRawBufferPointer, since ticket: Ticket) -> Bool {
        guard ticket.licence?.isValid != false,
            everything.load(ordering: .acquiring) <= ticket.sequence,
            slots[Self.slot(key.placement)].load(ordering: .acquiring) <= ticket.sequence
        else { return false }
        var isPermitted = true
        TagList.forEach(in: tags) { tag in
            if slots[Self.slot(tag: tag)].load(ordering: .acquiring) > ticket.sequence {
                isPermitted = false
            }
        }
        return isPermitted
    }

    /// Whether a fetch that began with `ticket` may still answer a request that comes now.
    ///
    /// Its tags may not be known yet: any tag's removal counts.
    func isCurrent(_ key: KeyHash, since ticket: Ticket) -> Bool {
        everything.load(ordering: .acquiring) <= ticket.sequence
            && anyTag.load(ordering: .acquiring) <= ticket.sequence
            && slots[Self.slot(key.placement)].load(ordering: .acquiring) <= ticket.sequence
    }

    private func raise(_ slot: borrowing Atomic<UInt64>) {
        let now = sequence.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        // Two removals may come here in either order; the slot only rises.
        slot.max(now, ordering: .acquiringAndReleasing)
    }

    private static func slot(_ placement: UInt64) -> Int {
        Int(truncatingIfNeeded: (placement ^ placement >> 32) & UInt64(slotsCount - 1))
    }

    /// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/): tags are few and short here.
    private static func slot(tag: UnsafeRawBufferPointer) -> Int {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for byte in tag { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        return slot(hash)
    }
}
