import Synchronization

/// Remembers what was removed lately, so that a fetch which began before a removal does not bring
/// back what the removal took away.
///
/// A fetch takes a ticket when it starts; its result may be stored while nothing that covers it has
/// been removed since. The removal of one key is a moment. One that takes time, in several places,
/// forbids what it covers from its beginning to its end: what is stored in one place meanwhile could
/// have been read in another that was not reached yet.
///
/// A slot holds the moment of the last removal, and above it how many removals are under way, so
/// that one comparison with a ticket sees both. Slots are shared by hash: a collision forbids a
/// store that was allowed, never the other way round.
///
/// `@unchecked Sendable`: the slots are atomics in memory that lives as long as the object.
final class RemovalLedger: @unchecked Sendable {
    struct Ticket: Sendable {
        fileprivate let sequence: UInt64
        /// What an attempt of a flight stores with besides.
        var licence: FlightLicence?
    }

    private static let slotsCount = 4_096
    /// One removal under way; below it there is room for more moments than a process lives.
    private static let oneUnderWay: UInt64 = 1 << 48

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

    /// A resource is removed, with its variants; noted inside the key's critical section.
    func note(_ key: KeyHash) { note(in: slots[Self.slot(key.placement)]) { $0 } }

    /// The removal of all entries in `scope` begins; `end` is to follow.
    func begin(_ scope: RemovalScope) { note(scope) { $0 + Self.oneUnderWay } }

    /// The removal that began is over.
    func end(_ scope: RemovalScope) { note(scope) { $0 - Self.oneUnderWay } }

    /// Whether an entry fetched since `ticket` may be stored.
    ///
    /// Asked inside the key's critical section, so that a removal is either seen here or comes after
    /// the store.
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
        Self.moment(in: everything) <= ticket.sequence
            && Self.moment(in: anyTag) <= ticket.sequence
            && Self.moment(in: slots[Self.slot(key.placement)]) <= ticket.sequence
    }

    private func note(_ scope: RemovalScope, _ change: (UInt64) -> UInt64) {
        switch scope {
        case .tag(var tag):
            tag.withUTF8 { bytes in
                note(in: slots[Self.slot(tag: UnsafeRawBufferPointer(bytes))], change)
            }
            note(in: anyTag, change)
        // No key or tag describes these.
        case .everything, .storageClass, .storedAfter, .storedBefore: note(in: everything, change)
        }
    }

    /// Changes how many removals are under way, and raises the moment of the last to now.
    private func note(in slot: borrowing Atomic<UInt64>, _ change: (UInt64) -> UInt64) {
        let now = sequence.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        var old = slot.load(ordering: .relaxed)
        while true {
            // Two removals may come here in either order; the moment only rises.
            let moment = max(old & (Self.oneUnderWay - 1), now)
            let (done, current) = slot.weakCompareExchange(
                expected: old,
                desired: change(old & ~(Self.oneUnderWay - 1)) | moment,
                ordering: .acquiringAndReleasing
            )
            if done { return }
            old = current
        }
    }

    private static func moment(in slot: borrowing Atomic<UInt64>) -> UInt64 {
        slot.load(ordering: .acquiring) & (oneUnderWay - 1)
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
