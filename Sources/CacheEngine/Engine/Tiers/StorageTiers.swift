/// The memory and what stands behind it, as one place: where an operation on a key happens in both
/// in the same order.
final class StorageTiers: Sendable {
    /// What stands behind the memory.
    enum Second: Sendable {
        case none
        case disk(DiskTier)
        case queued(QueuedStore)
    }

    let memory: MemoryTier
    let second: Second
    let hasher: KeyHasher
    let ledger = RemovalLedger()
    let staleMarks = StaleMarks()
    let clock: any CacheClock
    let recorder: Recorder

    init(
        memory: MemoryTier,
        second: Second,
        hasher: KeyHasher,
        clock: any CacheClock,
        recorder: Recorder
    ) {
        self.memory = memory
        self.second = second
        self.hasher = hasher
        self.clock = clock
        self.recorder = recorder
    }

    var nowSeconds: UInt32 { UInt32(clamping: clock.nowSeconds) }

    // MARK: Reading

    /// The entry in memory, counted as a use of it.
    func entryInMemory(
        _ hash: KeyHash,
        _ key: UnsafeRawBufferPointer,
        nowSeconds: UInt32
    ) -> Entry? {
        memory.entry(for: hash, key: key, nowSeconds: nowSeconds)
    }

    /// The entry in memory, without counting that as a use.
    func peek(_ key: RequestKey) -> Entry? {
        key.bytes.withUnsafeBytes {
            memory.peek(for: key.hash, key: $0, nowSeconds: nowSeconds)
        }
    }

    private func peek(_ key: StoreKey) -> Entry? {
        peek(RequestKey(bytes: key.bytes, hash: key.hash))
    }

    /// Notes a miss where it is certain without reading a file; false where it takes a look-up.
    func noteCertainMiss(_ key: RequestKey) -> Bool {
        let isInMemory = key.bytes.withUnsafeBytes {
            memory.contains(key.hash, key: $0, nowSeconds: nowSeconds)
        }
        guard !isInMemory else { return false }
        return switch second {
        case .none: true
        case .disk(let disk): disk.noteCertainMiss(key.hash)
        case .queued: false
        }
    }

    /// The entry wherever it is; what comes from behind the memory is brought into it.
    func entry(_ key: RequestKey) async -> (StoredEntry, CacheInfo.Tier)? {
        let inMemory = key.bytes.withUnsafeBytes {
            entryInMemory(key.hash, $0, nowSeconds: nowSeconds)
        }
        if let inMemory { return (StoredEntry(inMemory), .memory) }
        switch second {
        case .none: return nil
        case .disk(let disk): return await entry(key, on: disk)
        case .queued(let store):
            let (ticket, reading) = (ledger.ticket(), store.replacements.ticket())
            guard let found = await store.entry(for: key.storeKey),
                found.entry.head.hash == key.hash,
                found.entry.withKey({ bytes in
                    key.bytes.withUnsafeBytes { $0.hasSameBytes(as: bytes) }
                }),
                !found.entry.head.isExpired(nowSeconds: nowSeconds)
            else { return nil }
            if found.detachedBody == nil {
                memory.promote(found.entry, nowSeconds: nowSeconds) {
                    permits(found.entry, since: ticket)
                        && store.replacements.isCurrent(key.hash, since: reading)
                }
            }
            return (found, .disk)
        }
    }

    /// A disk hit in the page cache does not suspend.
    private func entry(
        _ key: RequestKey,
        on disk: DiskTier
    ) async -> (StoredEntry, CacheInfo.Tier)? {
        guard let (found, token) = await read(key.storeKey, on: disk) else { return nil }
        if found.detachedBody == nil {
            memory.promote(found.entry, nowSeconds: nowSeconds) {
                disk.isCurrent(token, key.hash)
            }
        }
        recorder.counters.add(.diskHits)
        return (found, .disk)
    }

    private func read(
        _ key: StoreKey,
        on disk: DiskTier
    ) async -> (StoredEntry, DiskToken)? {
        let now = nowSeconds
        var result = key.bytes.withUnsafeBytes { disk.read(key.hash, key: $0, nowSeconds: now) }
        if case .mustWait = result {
            result = await disk.readWaiting(key.hash, key: key.bytes, nowSeconds: now)
        }
        guard case .hit(let found, let token) = result else { return nil }
        return (found, token)
    }

    // MARK: Writing

    /// Stores an entry that was fetched since `ticket`.
    ///
    /// `isWanted` is asked once nothing else can happen to the key.
    func store(
        _ entry: Entry,
        since ticket: RemovalLedger.Ticket,
        onlyIf isWanted: () -> Bool = { true }
    ) -> StoreOutcome {
        var behind = StoreOutcome.refused(.notAdmitted)
        let inMemory = memory.store(
            entry,
            nowSeconds: nowSeconds,
            whileLocked: { _ in behind = storeBehind(entry) },
            onlyIf: { permits(entry, since: ticket) && isWanted() }
        )
        if inMemory == .stored || behind == .stored { return .stored }
        return inMemory
    }

    /// Replaces `old`, unless something newer has taken its place.
    func replace(
        _ old: StoredEntry,
        by new: StoredEntry,
        since ticket: RemovalLedger.Ticket
    ) async {
        let isReplaced = memory.replaceIfSame(
            new.entry,
            expecting: old.entry,
            nowSeconds: nowSeconds,
            whileLocked: { _ in _ = storeBehind(new.entry) },
            onlyIf: { permits(new.entry, since: ticket) }
        )
        guard !isReplaced, peek(old.key) == nil, let isBehind = await proofBehind(of: old) else {
            return
        }
        if let body = new.detachedBody as? DiskBody {
            _ = store(new.entry, body: body, since: ticket, onlyIf: isBehind)
        } else if new.detachedBody == nil {
            _ = store(new.entry, since: ticket, onlyIf: isBehind)
        }
    }

    /// Tells whether `entry`, or nothing, is what stands behind the memory; nil when something else
    /// does already.
    ///
    /// A store of the application's is not asked: what it holds is replaced.
    private func proofBehind(of entry: StoredEntry) async -> (() -> Bool)? {
        guard case .disk(let disk) = second else { return { true } }
        let hash = entry.entry.head.hash
        guard let (found, token) = await read(entry.key, on: disk) else {
            return { !disk.contains(hash) }
        }
        guard found.entry.isCopy(of: entry.entry) else { return nil }
        return { disk.isCurrent(token, hash) }
    }

    /// Stores an entry whose body is in a file of its own: it is kept on disk only.
    func store(
        _ entry: Entry,
        body: DiskBody,
        since ticket: RemovalLedger.Ticket,
        onlyIf isWanted: () -> Bool = { true }
    ) -> StoreOutcome {
        guard case .disk(let disk) = second else { return .refused(.notAdmitted) }
        let hash = entry.head.hash
        var outcome = StoreOutcome.refused(.removedMeanwhile)
        entry.withKey { key in
            _ = memory.remove(hash, key: key) { _ in
                guard permits(entry, since: ticket), isWanted() else { return }
                outcome = disk.enqueue(entry, body: body)
            }
        }
        return outcome
    }

    /// Where a body that is too large for memory can go while it arrives; nil when nowhere.
    func beginBody(_ hash: KeyHash, expectedCount: Int?) async throws -> BodyWriter? {
        guard case .disk(let disk) = second else { return nil }
        return try await disk.beginBody(for: hash, expectedBytes: expectedCount)
    }

    /// The entry with the body of `old` and everything else from `blueprint`.
    func renewed(_ old: StoredEntry, as blueprint: EntryBlueprint) -> StoredEntry {
        StoredEntry(blueprint.entry(body: [old.entry.body]), detachedBody: old.detachedBody)
    }

    /// The largest body that is gathered in memory before it is stored.
    var gatheredBytesMax: Int {
        switch second {
        case .none: memory.entrySizeBytesMax
        case .disk(let disk):
            max(memory.entrySizeBytesMax, disk.configuration.inlineBodyBytesMax)
        case .queued: max(memory.entrySizeBytesMax, QueuedStore.entryBytesMax)
        }
    }

    /// Whether what was fetched since `ticket` may be stored; asked while the key is locked.
    private func permits(_ entry: Entry, since ticket: RemovalLedger.Ticket) -> Bool {
        entry.withTags { ledger.permits(entry.head.hash, tags: $0, since: ticket) }
    }

    /// Called while the key is locked.
    private func storeBehind(_ entry: Entry) -> StoreOutcome {
        switch second {
        case .none: return .refused(.notAdmitted)
        case .disk(let disk):
            if entry.head.isMemoryOnly {
                disk.enqueueRemoval(entry.head.hash)
                return .refused(.notAdmitted)
            }
            return disk.enqueue(entry)
        case .queued(let store):
            if entry.head.isMemoryOnly {
                store.enqueueRemoval(StoredEntry(entry).key)
                return .refused(.notAdmitted)
            }
            return store.enqueue(StoredEntry(entry))
        }
    }

    // MARK: Removing

    /// Removes the entry, and forbids fetches under way to bring it back.
    ///
    /// - Returns: Whether there was one, as far as is known without reading the disk.
    @discardableResult
    func remove(_ key: RequestKey) -> Bool {
        var wasBehind = false
        let removed = key.bytes.withUnsafeBytes { bytes in
            memory.remove(key.hash, key: bytes) { _ in
                switch second {
                case .none: break
                case .disk(let disk): wasBehind = disk.enqueueRemoval(key.hash)
                case .queued(let store): store.enqueueRemoval(key.storeKey)
                }
                // Here, and not before: nobody can take a ticket and then see the old entry.
                ledger.note(key.hash)
            }
        }
        return removed != nil || wasBehind
    }

    /// The same, and the removal survives the end of the process once this returns.
    func removeDurably(_ key: RequestKey) async throws -> Bool {
        let isRemoved = remove(key)
        switch second {
        case .none: break
        case .disk(let disk): try await disk.confirmRemoval(of: key.hash)
        case .queued(let store): await store.drained()
        }
        return isRemoved
    }

    /// Removes all entries in `scope`, and forbids fetches under way to bring them back.
    ///
    /// What is behind goes first: a reader who found the memory empty would bring back into it what
    /// is still shown there. And before that, those finish who were permitted to store when it
    /// began: behind the memory their entries would come after the removal, and outlive it.
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        ledger.begin(scope)
        defer { ledger.end(scope) }
        memory.letWritersFinish()
        let behind: RemovalCount
        do {
            behind = try await removeBehind(scope)
        } catch {
            _ = memory.removeAll(in: scope)
            throw error
        }
        return Self.sum(memory.removeAll(in: scope), behind)
    }

    /// Makes stale what is stored by now and carries the tag; a fetch under way, which may bring
    /// what was there before, is not stored.
    func makeStale(_ tag: String) {
        ledger.begin(.tag(tag))
        defer { ledger.end(.tag(tag)) }
        memory.letWritersFinish()
        staleMarks.mark(tag, atSeconds: clock.nowSeconds)
    }

    /// Forbids fetches of the resource that are under way to store what they bring.
    func outdateFetches(of key: RequestKey) {
        ledger.note(key.hash)
        memory.letWritersFinish()
    }

    private func removeBehind(_ scope: RemovalScope) async throws -> RemovalCount {
        switch second {
        case .none: return RemovalCount()
        case .disk(let disk): return try await disk.removeAll(in: scope)
        case .queued(let store):
            await store.drained()
            return try await store.store.removeAll(in: scope)
        }
    }

    /// What is in memory is behind it too, but for what may not leave memory.
    private static func sum(_ inMemory: RemovalCount, _ behind: RemovalCount) -> RemovalCount {
        RemovalCount(
            entries: max(inMemory.entries, behind.entries),
            bytes: inMemory.bytes + behind.bytes
        )
    }

    /// Changes how much the disk may hold.
    func setDiskCapacity(_ bytes: Int) async throws {
        guard case .disk(let disk) = second else {
            throw CacheError(.configurationInvalid, detail: "This cache has no disk of its own")
        }
        await disk.setCapacity(bytes)
    }

    func flush() async throws {
        switch second {
        case .none: break
        case .disk(let disk): try await disk.flush()
        case .queued(let store):
            await store.drained()
            try await store.store.flush()
        }
    }

    func usageBehind() async -> StoreUsage {
        switch second {
        case .none: StoreUsage()
        case .disk(let disk): await disk.usage()
        case .queued(let store): await store.store.usage()
        }
    }

    /// Returns when what was queued for a store of the application's has been carried out.
    func drain() async {
        if case .queued(let store) = second { await store.drained() }
    }

    /// Writes out what was accepted; nothing is stored behind the memory from here on.
    func close() async {
        switch second {
        case .none: break
        case .disk(let disk): await disk.close()
        case .queued(let store): await store.finish()
        }
    }
}
