/// The tier behind the memory: nothing, the disk, or a custom store.
///
/// `accept` and `acceptRemoval` are called while the key's memory shard is locked: they are short
/// and wake nothing, and the order of operations on a key is the order of these calls. `ring` is
/// called after the shard is unlocked.
protocol BackingTier: Sendable {
    // MARK: Reading

    /// Counts a miss and returns `true` if the entry is certainly not there; returns `false` if
    /// only a look-up can tell.
    func noteCertainMiss(_ hash: KeyHash) -> Bool

    /// Whether `findAtOnce` finds anything.
    var readsAtOnce: Bool { get }

    /// Looks up the entry without waiting for a device.
    ///
    /// Returns `nil`, and counts nothing, for an entry that is absent or that the device must be waited
    /// for.
    func findAtOnce(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> BackingEntry?

    /// Looks up the entry; `seconds` is the time that the reader has.
    ///
    /// A tier with too many readers may refuse if `mayRefuse`; one whose device does not answer in
    /// time refuses any reader.
    func find(
        _ key: RequestKey,
        withinSeconds seconds: Double?,
        mayRefuse: Bool
    ) async -> BackingFinding

    /// Whether a look-up that finds nothing proves that there is no entry.
    var isLookUpConclusive: Bool { get }

    /// The counter of found entries.
    var hitCounter: Counter? { get }

    /// The file with the body of the newest entry; `nil` if its body is in no file of its own, or
    /// cannot be read.
    func bodyFile(of hash: KeyHash) -> DiskBody?

    // MARK: Writing, while the key is locked

    /// Accepts an entry; its body is `body` if the body was written before.
    ///
    /// A body that is kept from an older version comes from `bodyFile`.
    func accept(_ entry: Entry, body: DiskBody?) -> StoreOutcome

    /// Removes the entry.
    ///
    /// - Returns: Whether there was an entry, as far as is known at once.
    @discardableResult func acceptRemoval(of key: StoreKey) -> Bool

    /// Wakes the task that carries out accepted operations; called after the key is unlocked.
    func ring(_ hash: KeyHash)

    /// The largest body that is gathered in memory before it is stored here; 0 if the tier stores
    /// nothing.
    var gatheredBytesMax: Int { get }

    /// Whether an entry of that size, with a body of that size, can be kept.
    func hasRoom(entryBytes: Int, bodyBytes: Int) -> Bool

    /// Returns a writer for an arriving body that is too large for memory, or `nil` if the
    /// tier cannot take one.
    func openBody(_ hash: KeyHash, expectedCount: Int?) async throws -> BodyWriter?

    // MARK: Promises

    /// Returns when the last removal of the key survives the end of the process.
    func confirmRemoval(of hash: KeyHash) async throws

    /// The same for a removal that precedes a response: if the device hangs, the response does not
    /// wait for it.
    func confirmRemovalInTime(of hash: KeyHash) async throws

    /// Whether the end of the process could undo the last accepted removal.
    func mayLoseRemoval(of hash: KeyHash, isRemoved: Bool) -> Bool

    /// Returns when the end of the process can no longer restore an older entry of the key; waits
    /// only if there is one, and only in time.
    func settle(_ hash: KeyHash) async throws

    /// Whether `settle` never waits.
    var settlesAtOnce: Bool { get }

    /// The disk, which keeps soft purges and the position in the fleet's log; `nil` if only this
    /// process remembers them.
    var disk: DiskTier? { get }

    /// The entry's number in the order of soft purges.
    func staleSequence(of entry: Entry) -> UInt64

    /// Whether its entries outlive the soft purges that this process remembers.
    var entriesOutliveMarks: Bool { get }

    /// Whether an entry that is accepted after a removal of many entries has forgotten them outlives
    /// that removal, though the removal is not confirmed.
    var ordersRemovals: Bool { get }

    /// Whether entries of an earlier process may be stored.
    var mayHoldOlderEntries: Bool { get }

    // MARK: As a whole

    /// Removes all entries in `scope`.
    ///
    /// `whenForgotten` is called before a device or a store is waited for, also if the removal fails:
    /// from then on nothing is read here that was stored before and that `scope` covers.
    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () async -> Void
    ) async throws -> RemovalCount
    func changeCapacity(toBytes bytes: Int) async throws
    func flush() async throws
    func usage() async -> StoreUsage

    /// The number of removals that failed and must still be carried out.
    var owedCount: Int { get }

    /// Returns when every operation queued so far has been tried.
    func drained() async

    /// Accepts nothing more, and tries failed operations once more.
    ///
    /// Returns at once when the task is cancelled.
    func finish() async

    /// Writes out every accepted entry, and stores nothing afterwards.
    func close() async

    /// Ends the waits of look-ups for the device, because the cache ends, and the waits `forWork` that
    /// it leaves behind.
    ///
    /// - Returns: Whether the device is known to hang.
    @discardableResult
    func endWaits(forWork: Bool) -> Bool
}

/// An entry found behind the memory.
struct BackingEntry: Sendable {
    /// The tier that knows whether the entry is current.
    ///
    /// A closure would be an allocation for each hit on disk.
    enum Source: Sendable {
        case disk(DiskTier, KeyHash, DiskToken)
        case store(isCurrent: @Sendable () -> Bool)
    }

    let entry: StoredEntry
    let source: Source

    /// Whether it is still the newest copy; called while the key is locked.
    func isCurrent() -> Bool {
        switch source {
        case .disk(let disk, let hash, let token): disk.isCurrent(token, hash)
        case .store(let isCurrent): isCurrent()
        }
    }

    /// Counts the use of an entry that `findAtOnce` found; `find` has counted it.
    func countUse() {
        guard case .disk(let disk, let hash, let token) = source else { return }
        disk.countUse(hash, of: token)
    }
}

/// The outcome of a look-up behind the memory.
enum BackingFinding: Sendable {
    case entry(BackingEntry)
    case nothing
    /// Too many readers wait, or the device did not answer in time: there may be an entry.
    case refused
}

/// The behaviour that most tiers share.
extension BackingTier {
    var isLookUpConclusive: Bool { true }
    var readsAtOnce: Bool { false }
    func findAtOnce(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> BackingEntry? { nil }
    var hitCounter: Counter? { nil }
    func bodyFile(of hash: KeyHash) -> DiskBody? { nil }
    func openBody(_ hash: KeyHash, expectedCount: Int?) async throws -> BodyWriter? { nil }
    func confirmRemovalInTime(of hash: KeyHash) async throws {
        try await confirmRemoval(of: hash)
    }
    func mayLoseRemoval(of hash: KeyHash, isRemoved: Bool) -> Bool { false }
    func settle(_ hash: KeyHash) async throws {}
    var settlesAtOnce: Bool { false }
    var disk: DiskTier? { nil }
    var entriesOutliveMarks: Bool { false }
    var ordersRemovals: Bool { true }
    var mayHoldOlderEntries: Bool { false }
    func staleSequence(of entry: Entry) -> UInt64 { entry.head.sequence }
    func changeCapacity(toBytes bytes: Int) async throws {
        throw CacheError(
            .configurationInvalid,
            detail: "The cache has no directory of its own, so its capacity cannot be changed"
        )
    }
    var owedCount: Int { 0 }
    func drained() async {}
    func finish() async {}
    func close() async {}
    func endWaits(forWork: Bool) -> Bool { false }
}

/// No tier behind the memory.
struct NoBackingTier: BackingTier {
    func noteCertainMiss(_ hash: KeyHash) -> Bool { true }
    func find(
        _ key: RequestKey,
        withinSeconds: Double?,
        mayRefuse: Bool
    ) async -> BackingFinding { .nothing }
    var settlesAtOnce: Bool { true }
    func accept(_ entry: Entry, body: DiskBody?) -> StoreOutcome { .refused(.notAdmitted) }
    func acceptRemoval(of key: StoreKey) -> Bool { false }
    func ring(_ hash: KeyHash) {}
    var gatheredBytesMax: Int { 0 }
    func hasRoom(entryBytes: Int, bodyBytes: Int) -> Bool { false }
    func confirmRemoval(of hash: KeyHash) async throws {}
    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () async -> Void
    ) async throws -> RemovalCount {
        await whenForgotten()
        return RemovalCount()
    }
    func flush() async throws {}
    func usage() async -> StoreUsage { StoreUsage() }
}
