import Synchronization

/// Remembers recent removals, so that a fetch that began before a removal does not restore the
/// removed entry.
///
/// A fetch takes a ticket when it starts. Its result is stored only if no removal since then covers
/// it. The removal of one key is a moment. A removal of many keys takes time, because it visits
/// several places one after another; from its beginning to its end nothing that it covers is stored.
/// Otherwise an entry could be read in a place that the removal has not reached, and be stored in one
/// that it has left.
///
/// A slot holds the moment of the last removal, and above it how many removals are under way, so
/// that one comparison with a ticket sees both. Slots are shared by hash: a collision forbids a
/// store that was allowed, never the other way round.
///
/// `@unchecked Sendable`: the slots are atomics in memory that lives as long as the object.
final class RemovalLedger: @unchecked Sendable {
    struct Ticket: Sendable {
        fileprivate let sequence: UInt64
        /// Removals of the key count if they came after this moment: that of the removal which the
        /// ticket's own response has made, and `sequence` before.
        fileprivate var keySequence: UInt64
        /// The place in the fleet's order of purges: all up to it were applied here.
        var fleetPosition: UInt64
        /// Whether the response may replace a record of another machine in the shared store.
        var mayReplaceShared = true
        /// The permit of a flight's attempt; the store refuses without a valid one.
        var permit: StorePermit?
        /// The place of the response's head among all heads; 0 if there is no head yet.
        var order: UInt64 = 0
        /// The response while its body arrives; the store refuses one that is outdated.
        var arrival: Arrival?

        /// Whether the attempt that holds the ticket, if one does, still holds its flight.
        var isPermitted: Bool { permit?.isValid != false }
    }

    private static let slotsCount = 4_096
    /// Counts one removal under way, in the bits above the moments.
    ///
    /// A million of them fit, each with a task that waits. The bits below count moments, enough for
    /// five years of 100,000 removals a second.
    private static let oneUnderWay: UInt64 = 1 << 44

    private let sequence = Atomic<UInt64>(1)
    private let fleetPosition = Atomic<UInt64>(0)
    private let everything = Atomic<UInt64>(0)
    private let anyTag = Atomic<UInt64>(0)
    private let slots: UnsafeMutablePointer<Atomic<UInt64>>
    /// The moments without those of soft purges, which leave the entries that they cover.
    private let hardSlots: UnsafeMutablePointer<Atomic<UInt64>>
    private let hardEverything = Atomic<UInt64>(0)

    init() {
        slots = Self.makeSlots()
        hardSlots = Self.makeSlots()
    }

    private static func makeSlots() -> UnsafeMutablePointer<Atomic<UInt64>> {
        let slots = UnsafeMutablePointer<Atomic<UInt64>>.allocate(capacity: slotsCount)
        for index in 0..<slotsCount { (slots + index).initialize(to: Atomic(0)) }
        return slots
    }

    deinit {
        assert(everything.load(ordering: .relaxed) < Self.oneUnderWay, "every removal has ended")
        assert(anyTag.load(ordering: .relaxed) < Self.oneUnderWay, "every removal has ended")
        for slots in [slots, hardSlots] {
            slots.deinitialize(count: Self.slotsCount)
            slots.deallocate()
        }
    }

    func ticket() -> Ticket {
        // Read first: when another log begins, everything is removed before its positions count, so
        // no ticket that may be stored has a position of the old log.
        let sequence = sequence.load(ordering: .acquiring)
        return Ticket(
            sequence: sequence,
            keySequence: sequence,
            fleetPosition: fleetPosition.load(ordering: .acquiring)
        )
    }

    /// Every purge of the fleet up to `position` was applied here.
    func note(fleetPosition position: UInt64) {
        fleetPosition.store(position, ordering: .releasing)
    }

    /// Notes the removal of a resource with its variants, inside the key's critical section; a soft
    /// purge leaves them.
    func note(_ key: KeyHash, isSoft: Bool = false) {
        let slot = Self.slot(key.placement)
        if !isSoft { note(in: hardSlots[slot]) { $0 } }
        note(in: slots[slot]) { $0 }
    }

    /// Notes the removal of a resource by the very response that `ticket` is for, inside the key's
    /// critical section.
    ///
    /// Every other removal since the ticket was taken forbids this response, one of the key as well:
    /// the slot tells whether there was one before, and shows each that comes later.
    ///
    /// - Returns: The ticket that its own removal does not outdate.
    func note(_ key: KeyHash, by ticket: Ticket) -> Ticket {
        assert(isOfThisLedger(ticket))
        let slot = Self.slot(key.placement)
        note(in: hardSlots[slot]) { $0 }
        let (before, now) = note(in: slots[slot]) { $0 }
        var ticket = ticket
        if before <= ticket.keySequence || Mutant.outlivesEarlierRemovals.isOn {
            ticket.keySequence = now
        }
        return ticket
    }

    /// Notes that the removal, or the soft purge, of all entries in `scope` begins; `end` must
    /// follow.
    func begin(_ scope: RemovalScope, isSoft: Bool = false) {
        note(scope, isSoft: isSoft) { $0 + Self.oneUnderWay }
    }

    /// Notes that the removal is over.
    func end(_ scope: RemovalScope, isSoft: Bool = false) {
        note(scope, isSoft: isSoft) { underWay in
            assert(underWay >= Self.oneUnderWay, "every end has a beginning")
            return underWay - Self.oneUnderWay
        }
    }

    /// Whether an entry fetched since `ticket` may be stored.
    ///
    /// Called inside the key's critical section, so that a removal is either seen here or happens
    /// after the store.
    func permits(_ entry: Entry, since ticket: Ticket) -> Bool {
        // Not the ticket, which the closure would copy.
        let sequence = ticket.sequence
        return permits(entry.head.hash, since: ticket)
            && entry.withTags { permits(tags: $0, since: sequence) }
    }

    /// The same for an entry that is not made yet.
    func permits(_ key: KeyHash, _ tags: TagList, since ticket: Ticket) -> Bool {
        let sequence = ticket.sequence
        return permits(key, since: ticket)
            && tags.bytes.withUnsafeBytes { permits(tags: $0, since: sequence) }
    }

    private func permits(_ key: KeyHash, since ticket: Ticket) -> Bool {
        assert(isOfThisLedger(ticket))
        if Mutant.storesWhatWasRemoved.isOn { return true }
        return ticket.isPermitted
            && (ticket.arrival?.isOutdated != true || Mutant.storesOlderAnswers.isOn)
            && everything.load(ordering: .acquiring) <= ticket.sequence
            && slots[Self.slot(key.placement)].load(ordering: .acquiring) <= ticket.keySequence
    }

    private func permits(tags: UnsafeRawBufferPointer, since sequence: UInt64) -> Bool {
        if Mutant.ledgerIgnoresTags.isOn { return true }
        return !Self.isNoted(tags, in: slots, since: sequence)
    }

    private static func isNoted(
        _ tags: UnsafeRawBufferPointer,
        in slots: UnsafeMutablePointer<Atomic<UInt64>>,
        since sequence: UInt64
    ) -> Bool {
        var isNoted = false
        TagList.forEach(in: tags) { tag in
            if slots[slot(tag: tag)].load(ordering: .acquiring) > sequence { isNoted = true }
        }
        return isNoted
    }

    /// Whether an entry that was found since `ticket` may have been removed; a soft purge removes
    /// nothing.
    func mayHaveRemoved(_ entry: Entry, since ticket: Ticket) -> Bool {
        assert(isOfThisLedger(ticket))
        let sequence = ticket.sequence
        let slot = Self.slot(entry.head.hash.placement)
        return hardEverything.load(ordering: .acquiring) > sequence
            || hardSlots[slot].load(ordering: .acquiring) > sequence
            || entry.withTags { Self.isNoted($0, in: hardSlots, since: sequence) }
    }

    /// Whether a fetch that began with `ticket` may still answer a request that arrives now,
    /// whatever tags its response carries.
    func isCurrent(_ key: KeyHash, since ticket: Ticket) -> Bool {
        isPresent(key, since: ticket) && !hasRemovedTags(since: ticket)
    }

    /// Whether neither the key nor everything was removed since `ticket`.
    func isPresent(_ key: KeyHash, since ticket: Ticket) -> Bool {
        assert(isOfThisLedger(ticket))
        return Self.moment(in: everything) <= ticket.sequence
            && Self.moment(in: slots[Self.slot(key.placement)]) <= ticket.keySequence
    }

    /// Whether any tag was removed since `ticket`.
    func hasRemovedTags(since ticket: Ticket) -> Bool {
        assert(isOfThisLedger(ticket))
        return Self.moment(in: anyTag) > ticket.sequence
    }

    /// Whether the ticket states a moment that has been.
    private func isOfThisLedger(_ ticket: Ticket) -> Bool {
        ticket.sequence <= sequence.load(ordering: .acquiring)
    }

    private func note(_ scope: RemovalScope, isSoft: Bool, _ change: (UInt64) -> UInt64) {
        switch scope {
        case .tag(var tag):
            let slot = tag.withUTF8 { Self.slot(tag: UnsafeRawBufferPointer($0)) }
            if !isSoft { note(in: hardSlots[slot]) { $0 } }
            note(in: slots[slot], change)
            note(in: anyTag, change)
        // These scopes have no key or tag.
        case .everything, .storageClass, .storedAfter, .storedBefore:
            if !isSoft { note(in: hardEverything) { $0 } }
            note(in: everything, change)
        }
    }

    /// Changes the number of removals under way, and raises the moment of the last one to now.
    ///
    /// - Returns: The slot as it was before, and the moment of this change.
    @discardableResult
    private func note(
        in slot: borrowing Atomic<UInt64>,
        _ change: (UInt64) -> UInt64
    ) -> (before: UInt64, now: UInt64) {
        var now = sequence.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
        var old = slot.load(ordering: .acquiring)
        while true {
            // Two removals may arrive in either order; the moment only rises. The later one to arrive
            // also counts for a ticket that was taken since the other's moment.
            if old & (Self.oneUnderWay - 1) > now {
                now = sequence.wrappingAdd(1, ordering: .acquiringAndReleasing).newValue
            }
            assert(now < Self.oneUnderWay, "a moment leaves the bits above it free")
            let (done, current) = slot.weakCompareExchange(
                expected: old,
                desired: change(old & ~(Self.oneUnderWay - 1)) | now,
                ordering: .acquiringAndReleasing
            )
            if done { return (old, now) }
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
