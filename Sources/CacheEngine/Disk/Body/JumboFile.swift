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
    /// Whether the path still leads to the directory of the tier.
    private let isInPlace: @Sendable () -> Bool
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
        isInPlace: @escaping @Sendable () -> Bool
    ) {
        self.reference = reference
        self.path = path
        self.volume = volume
        self.pool = pool
        self.ledger = ledger
        self.isInPlace = isInPlace
    }

    deinit {
        switch fate.load(ordering: .acquiring) {
        case .kept, .unlinked: break
        case .doomed:
            pool.submitClosing { [path, volume, isInPlace, ledger, bytes = occupiedBytes] in
                Self.erase(path, on: volume, if: isInPlace, releasing: bytes, in: ledger)
            }
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

    /// Keeps the file for the entry of this identity; returns `false` if another entry owns it.
    func adopt(by identity: UInt64) -> Bool {
        let (_, known) = owner.compareExchange(
            expected: 0,
            desired: identity,
            ordering: .relaxed
        )
        guard known == 0 || known == identity else { return false }
        fate.store(.kept, ordering: .releasing)
        return true
    }

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
            erase(
                file.path,
                on: file.volume,
                if: file.isInPlace,
                releasing: file.occupiedBytes,
                in: file.ledger
            )
        }
    }

    private static func erase(
        _ path: String,
        on volume: Volume,
        if isInPlace: () -> Bool,
        releasing bytes: Int,
        in ledger: DiskLedger
    ) {
        // Another cache may use the path by now, and a copy of the directory has the same names.
        guard isInPlace() || Mutant.unlinksInAnyDirectory.isOn else { return }
        // A file that cannot be unlinked still occupies its room; the next opening removes it.
        do {
            try volume.unlink(path)
            ledger.releaseBody(bytes)
        } catch { if error == .notFound { ledger.releaseBody(bytes) } }
    }
}
