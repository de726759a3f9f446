import Synchronization

/// A finished file with one large body, shared by the shard that lists it and by its readers.
///
///     kept ──doom──▶ doomed ──last reference released──▶ unlinked, its bytes released
///
/// A file that was not doomed, because the tier was closed, stays on disk, and so does a doomed one
/// whose directory is no longer the tier's: the next opening unlinks it if no record refers to it.
package final class JumboFile: Sendable {
    private enum Fate: UInt8, AtomicRepresentable { case kept, doomed, unlinked }

    package let reference: BodyReference
    let path: String
    let volume: Volume
    let pool: IOPool
    let ledger: DiskLedger
    let watch: DiskWatch
    /// Unlinks the file and releases its bytes, if the directory is still the tier's.
    private let erase: @Sendable () -> Void
    private let fate = Atomic<Fate>(.kept)
    private let lastSequence = Atomic<UInt64>(0)
    private let sparedSequence = Atomic<UInt64>(0)
    private let owner = Atomic<UInt64>(0)
    private let damage = Atomic<Bool>(false)

    init(
        _ reference: BodyReference,
        path: String,
        volume: Volume,
        pool: IOPool,
        ledger: DiskLedger,
        watch: DiskWatch,
        erase: @escaping @Sendable () -> Void
    ) {
        self.reference = reference
        self.path = path
        self.volume = volume
        self.pool = pool
        self.ledger = ledger
        self.watch = watch
        self.erase = erase
    }

    deinit {
        switch fate.load(ordering: .acquiring) {
        case .kept, .unlinked: break
        case .doomed: pool.submitClosing(erase)
        }
    }

    var occupiedBytes: Int { DiskLedger.bodyFileBytes(reference.fileBytes) }

    /// The sequence number of the newest record that refers to the file.
    var sequence: UInt64 { lastSequence.load(ordering: .relaxed) }
    func note(sequence: UInt64) { lastSequence.store(sequence, ordering: .relaxed) }

    /// The number by which bodies make room, the lowest first: that of the newest record, or the one
    /// at which the body was last spared.
    var age: UInt64 { max(sequence, sparedSequence.load(ordering: .relaxed)) }
    func spare(at sequence: UInt64) { sparedSequence.store(sequence, ordering: .relaxed) }

    /// Whether a reader found the file unreadable, so that its entry is useless.
    var isDamaged: Bool { damage.load(ordering: .relaxed) }
    func noteDamage() { damage.store(true, ordering: .relaxed) }

    /// Keeps the file for the entry of this hash; returns `false` if another entry owns it.
    func adopt(by hash: KeyHash) -> Bool {
        _ = owner.compareExchange(expected: 0, desired: Self.mark(hash), ordering: .relaxed)
        guard isOwned(by: hash) else { return false }
        fate.store(.kept, ordering: .releasing)
        return true
    }

    /// Whether the file is of that hash's entry: the shard lists it by the identity alone.
    func isOwned(by hash: KeyHash) -> Bool { owner.load(ordering: .relaxed) == Self.mark(hash) }

    private static func mark(_ hash: KeyHash) -> UInt64 { hash.placement ^ hash.identity }

    /// Unlinks the file on the I/O pool when its last reference is released.
    func doom() { fate.store(Mutant.doomsNothing.isOn ? .kept : .doomed, ordering: .releasing) }

    /// Releases doomed files for a caller that needs their room and may wait for the device.
    ///
    /// A file without another reference is unlinked at once, the others as `doom` says: their last
    /// reader may be an event loop.
    static func release(_ files: inout [JumboFile]) {
        while var file = files.popLast() {
            guard isKnownUniquelyReferenced(&file) else { continue }
            file.fate.store(.unlinked, ordering: .relaxed)
            file.erase()
        }
    }
}
