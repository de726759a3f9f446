import Synchronization

/// The memory and the tier behind it, combined: operations on a key happen in both in the same
/// order.
///
/// Which of them keep a response is decided here:
///
/// - An entry with its body is offered to both (`put`), and counts as stored if one keeps it. The
///   memory refuses what is too large or not worth what it would displace (`MemoryTier.isTooLarge`,
///   `ShardSet.judge`), the tier behind it what is for memory only (`storeBehind`) or has no room
///   there (`ShardState.refusal`, `StoreBacklog.store`).
/// - A body too large to be gathered in memory, or one that arrives while memory is short, goes to
///   a file (`BodyKeeper`), and its entry behind the memory alone (`store` with a body).
/// - An entry found behind the memory is copied into it if the memory would keep it (`use`).
/// - A response that neither has room for is refused at its head (`hasRoom`).
final class TieredStore: Sendable {
    let memory: MemoryTier
    /// The tier behind the memory.
    let backing: any BackingTier
    let hasher: KeyHasher
    let ledger = RemovalLedger()
    let arrivals = ArrivalLedger()
    let softPurges: any SoftPurges
    let clock: any CacheClock
    let recorder: Recorder
    /// The way to the store that a fleet shares; `nil` without one.
    let outlet: SharedOutlet?
    /// Whether there is an outlet; asking the optional would copy it.
    let hasOutlet: Bool
    /// Whether the tier behind the memory finds some entries without waiting.
    let readsBehindAtOnce: Bool
    /// Whether anything was ever marked stale; otherwise a hit looks for no mark.
    let isAnythingMarked = Atomic(false)
    /// The cache's own executor, which copies large bodies; `nil` for the global one.
    let executor: (any TaskExecutor)?
    let copier = LargeBodyCopier()

    init(
        memory: MemoryTier,
        backing: any BackingTier,
        hasher: KeyHasher,
        clock: any CacheClock,
        recorder: Recorder,
        outlet: SharedOutlet? = nil,
        executor: (any TaskExecutor)? = nil
    ) {
        self.memory = memory
        self.backing = backing
        self.hasher = hasher
        self.clock = clock
        self.recorder = recorder
        self.outlet = outlet
        hasOutlet = outlet != nil
        self.executor = executor
        readsBehindAtOnce = backing.readsAtOnce
        if let disk = backing.disk {
            softPurges = disk
        } else {
            softPurges = StaleMarks(behind: backing, hasher: hasher, clock: clock)
        }
        if backing.disk?.hasStaleMarks == true {
            isAnythingMarked.store(true, ordering: .releasing)
        }
    }

    // MARK: Reading

    /// The entry in memory, counted as a use of it.
    func entryInMemory(_ key: RequestKey) -> Entry? {
        key.bytes.withUnsafeBytes { memory.entry(for: key.hash, key: $0) }
    }

    /// The entry in memory, without counting that as a use.
    func peek(_ key: RequestKey) -> Entry? {
        key.bytes.withUnsafeBytes { memory.peek(for: key.hash, key: $0) }
    }

    /// Counts a miss and returns `true` if the miss is certain without reading a file; returns
    /// `false` if only a look-up can tell.
    func noteCertainMiss(_ key: RequestKey) -> Bool {
        let isInMemory = key.bytes.withUnsafeBytes { memory.contains(key.hash, key: $0) }
        return isInMemory ? false : backing.noteCertainMiss(key.hash)
    }

    /// The outcome of a look-up in all tiers.
    enum Finding: Sendable {
        case entry(StoredEntry, CacheInfo.Tier)
        case nothing
        /// Too many readers wait, or the device did not answer in time: there may be an entry.
        case refused

        var isRefused: Bool {
            if case .refused = self { true } else { false }
        }
    }

    /// The entry in any tier; `nil` proves no absence, because the device may hang.
    func entry(_ key: RequestKey) async -> (StoredEntry, CacheInfo.Tier)? {
        guard case .entry(let entry, let tier) = await find(key) else { return nil }
        return (entry, tier)
    }

    /// Whether there may be an entry: it was found, or the device did not tell in time.
    func mayHold(_ key: RequestKey) async -> Bool {
        if case .nothing = await find(key) { return false }
        return true
    }

    /// Looks in every tier; an entry behind the memory is promoted if the memory would keep it.
    ///
    /// The tier behind the memory is waited for no longer than `seconds`, if given. Too many readers
    /// refuse only a look-up that `mayRefuse`; a device that hangs refuses each.
    func find(
        _ key: RequestKey,
        withinSeconds seconds: Double? = nil,
        mayRefuse: Bool = false
    ) async -> Finding {
        if let entry = entryInMemory(key) { return .entry(StoredEntry(entry), .memory) }
        let ticket = ledger.ticket()
        let found = await backing.find(key, withinSeconds: seconds, mayRefuse: mayRefuse)
        switch found {
        case .entry(let found):
            use(found, since: ticket)
            return .entry(found.entry, .disk)
        case .nothing: return .nothing
        case .refused: return .refused
        }
    }

    /// The entry behind the memory, if it is read without waiting and its body lies beside its head.
    ///
    /// The caller that uses it calls `use`.
    func findBehindAtOnce(_ key: UnsafeRawBufferPointer) -> BackingEntry? {
        backing.findAtOnce(hasher.hash(key), key: key)
    }

    /// Counts a hit behind the memory, looked up since `ticket`, and promotes the entry.
    func use(_ found: BackingEntry, since ticket: RemovalLedger.Ticket) {
        if found.entry.detachedBody == nil {
            let entry = found.entry.entry
            memory.promote(entry) {
                found.isCurrent() && permits(entry, since: ticket)
                    || Mutant.promotesWhatWasReplaced.isOn
            }
        }
        if let counter = backing.hitCounter { recorder.counters.add(counter) }
    }

    // MARK: Writing

    /// Stores an entry that was fetched since `ticket`.
    ///
    /// `isCurrent` says whether what the entry replaces is still the newest; it is called while the
    /// key is locked.
    func store(
        _ entry: Entry,
        since ticket: RemovalLedger.Ticket,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> StoreOutcome {
        let outcome = put(entry, since: ticket, onlyIf: isCurrent)
        backing.ring(entry.head.hash)
        share(StoredEntry(entry), outcome, since: ticket)
        return outcome
    }

    /// Stores an entry that another machine of the fleet has stored.
    func adopt(_ entry: Entry, since ticket: RemovalLedger.Ticket) {
        _ = put(entry, since: ticket)
        backing.ring(entry.head.hash)
    }

    /// Copies an entry that was fetched since `ticket` into the store that the fleet shares.
    private func share(
        _ entry: StoredEntry,
        _ outcome: StoreOutcome,
        since ticket: RemovalLedger.Ticket
    ) {
        guard hasOutlet, outcome != .refused(.removedMeanwhile), let outlet else { return }
        let index = presentIndex(of: RequestKey(entry.key)).map { StoredEntry($0) }
        outlet.stored(entry, index: index, since: ticket, nowSeconds: clock.nowSeconds) {
            permits(entry.entry, since: ticket)
        }
    }

    /// Stores an entry without waking the tier behind the memory: the caller rings it.
    func put(
        _ entry: Entry,
        since ticket: RemovalLedger.Ticket,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> StoreOutcome {
        var behind = StoreOutcome.refused(.notAdmitted)
        let inMemory = memory.store(
            entry,
            whileLocked: {
                outdateOlder(than: entry, since: ticket)
                behind = storeBehind(entry)
            },
            onlyIf: { permits(entry, since: ticket) && isCurrent() }
        )
        if inMemory == .stored || behind == .stored { return .stored }
        return inMemory
    }

    /// Stores an entry whose body is in a file of its own: it is kept on disk only.
    func store(
        _ entry: Entry,
        body: DiskBody,
        since ticket: RemovalLedger.Ticket,
        onlyIf isCurrent: () -> Bool = { true }
    ) -> StoreOutcome {
        var outcome = StoreOutcome.refused(.removedMeanwhile)
        entry.withKey { key in
            _ = memory.remove(
                entry.head.hash,
                key: key,
                whileLocked: {
                    outdateOlder(than: entry, since: ticket)
                    outcome = backing.accept(entry, body: body)
                },
                onlyIf: { permits(entry, since: ticket) && isCurrent() }
            )
        }
        backing.ring(entry.head.hash)
        share(StoredEntry(entry, detachedBody: body), outcome, since: ticket)
        return outcome
    }

    /// Replaces `old` by `new`, which has its body, wherever it is still stored: in memory, or behind
    /// it.
    ///
    /// `isShared` says whether `new` is also for the store that a fleet shares, and `isWritten` whether
    /// it is for any store but the memory: if it is not, the copies of `old` there stay.
    ///
    /// - Returns: Whether `old` is certainly no longer stored, replaced by `new` or by a later
    ///   operation.
    @discardableResult
    func replace(
        _ old: StoredEntry,
        by new: StoredEntry,
        since ticket: RemovalLedger.Ticket,
        isShared: Bool = true,
        isWritten: Bool = true
    ) async -> Bool {
        let isShared = isShared && isWritten
        let key = RequestKey(old.key)
        if let present = peek(key) {
            // A copy may have been promoted from behind the memory meanwhile.
            guard present.isCopy(of: old.entry) else { return true }
            let kept = isWritten ? bodyBehind(key, of: new.entry) : nil
            let isReplaced = memory.replaceIfSame(
                new.entry,
                expecting: present,
                whileLocked: {
                    outdateOlder(than: new.entry, since: ticket)
                    if let kept {
                        _ = backing.accept(kept.entry, body: kept.body)
                    } else if isWritten {
                        _ = storeBehind(new.entry)
                    }
                },
                onlyIf: { permits(new.entry, since: ticket) }
            )
            backing.ring(key.hash)
            // If it was evicted meanwhile, the entry is stored behind the memory only.
            if isReplaced {
                if isShared { share(new, .stored, since: ticket) }
                return true
            }
            if let present = peek(key) { return !present.isCopy(of: old.entry) }
        }
        guard isWritten else { return false }
        // Finding nothing behind the memory proves nothing: a newer entry may have been there and
        // removed.
        let found: BackingEntry
        switch await backing.find(key, withinSeconds: nil, mayRefuse: false) {
        case .entry(let entry): found = entry
        case .nothing: return backing.isLookUpConclusive
        case .refused: return removeUnseen(key, before: new.entry, since: ticket)
        }
        guard found.entry.entry.isCopy(of: old.entry) || Mutant.replacesWhatIsNewerOnDisk.isOn
        else { return true }
        if let body = new.detachedBody as? DiskBody {
            return store(new.entry, body: body, since: ticket, onlyIf: found.isCurrent) == .stored
        }
        guard new.detachedBody == nil else { return false }
        let outcome = put(new.entry, since: ticket, onlyIf: found.isCurrent)
        backing.ring(key.hash)
        if isShared { share(new, outcome, since: ticket) }
        return outcome == .stored
    }

    /// Removes what is stored behind a device that hangs: it may be what `new` was to replace, and
    /// must not outlive it.
    ///
    /// - Returns: Whether that was permitted.
    private func removeUnseen(
        _ key: RequestKey,
        before new: Entry,
        since ticket: RemovalLedger.Ticket
    ) -> Bool {
        var isRemoved = false
        key.bytes.withUnsafeBytes { bytes in
            _ = memory.remove(
                key.hash,
                key: bytes,
                whileLocked: {
                    outdateOlder(than: new, since: ticket)
                    backing.acceptRemoval(of: key.storeKey)
                    isRemoved = true
                },
                onlyIf: { permits(new, since: ticket) && !Mutant.leavesTheUnseen.isOn }
            )
        }
        backing.ring(key.hash)
        return isRemoved
    }

    /// The largest body that is gathered in memory before it is stored.
    var gatheredBytesMax: Int {
        min(EntryHead.bodyCountMax, max(memory.entrySizeBytesMax, backing.gatheredBytesMax))
    }

    /// The largest body that any tier keeps: as large as a reference to a body file can say.
    private static let bodyBytesMax = 1 << 46

    /// Whether any tier can keep a response of that size; `headBytes` is its size without the body.
    ///
    /// An origin may announce any length, so nothing is added to one that is beyond all limits.
    func hasRoom(forBody bodyBytes: Int, headBytes: Int) -> Bool {
        guard bodyBytes <= Self.bodyBytesMax || Mutant.addsToAnyLength.isOn else { return false }
        let entryBytes = bodyBytes + headBytes + StoredResponse.fieldsOffset + 4
        let isKeptInMemory =
            bodyBytes <= EntryHead.bodyCountMax
            && Entry.chargeBytes(bodyCount: entryBytes) <= memory.entrySizeBytesMax
        return isKeptInMemory || backing.hasRoom(entryBytes: entryBytes, bodyBytes: bodyBytes)
    }

    /// Whether an entry fetched since `ticket` may be stored; called while the key is locked.
    func permits(_ entry: Entry, since ticket: RemovalLedger.Ticket) -> Bool {
        ledger.permits(entry, since: ticket)
    }

    /// Keeps responses with earlier heads from taking the entry's place when their bodies are
    /// complete; called while the key is locked.
    func outdateOlder(than entry: Entry, since ticket: RemovalLedger.Ticket) {
        let isVariant = entry.withKey { ResourceTag.resource(in: $0) != nil }
        arrivals.outdate(
            entry.head.hash,
            order: ticket.order,
            withVariants: !isVariant && !entry.head.flags.contains(.index),
            except: ticket.arrival
        ) {
            StoredResponse.isPart(entry, ofVersion: $0)
        }
    }

    /// Called while the key is locked.
    func storeBehind(_ entry: Entry) -> StoreOutcome {
        guard entry.head.isMemoryOnly else { return backing.accept(entry, body: nil) }
        backing.acceptRemoval(of: StoredEntry(entry).key)
        return .refused(.notAdmitted)
    }
}
