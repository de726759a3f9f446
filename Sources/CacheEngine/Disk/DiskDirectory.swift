import Synchronization

/// The directory of one cache on disk: its lock, its manifest and the shards' directories.
///
/// The tier holds it while it works; the lock is released with the last reference.
final class DiskDirectory: Sendable {
    static let lockName = "LOCK"
    /// The position in the log of a fleet.
    static let bookmarkName = "FLEET"
    private static let bookmarkDraftName = "FLEET.new"
    /// The longest bookmark, with its mark.
    private static let bookmarkBytesMax = 4_096

    let path: String
    let manifest: Manifest
    /// Whether this opening laid out the directory.
    let isFresh: Bool
    /// Messages for the operator: which files were damaged, and how the damage was handled.
    let notes: [String]
    private let volume: Volume
    private let lock: Mutex<OpenFile?>

    private init(
        _ path: String,
        _ found: (manifest: Manifest, isFresh: Bool, notes: [String]),
        _ volume: Volume,
        _ lock: OpenFile
    ) {
        self.path = path
        manifest = found.manifest
        isFresh = found.isFresh
        notes = found.notes
        self.volume = volume
        self.lock = Mutex(lock)
    }

    deinit { unlock() }

    /// Releases the lock, so that another cache can use the directory.
    func unlock() {
        let held = lock.withLock { lock in
            defer { lock = nil }
            return lock
        }
        if let held { Self.release(held, volume) }
    }

    /// Whether the path still leads to the directory that was opened, and the lock is held.
    ///
    /// A directory that was deleted, and perhaps created again, belongs to another cache, and so may
    /// one whose lock was released.
    var isInPlace: Bool {
        lock.withLock { lock in
            guard let lock else { return false }
            do throws(FileFault) {
                return try volume.identity(of: lock)
                    == volume.identity(ofPath: path + "/" + Self.lockName)
            } catch {
                // Any other error proves nothing.
                return error != .notFound
            }
        }
    }

    /// Whether the lock is held, and the path no longer leads to the directory that was opened.
    var isGone: Bool { lock.withLock { $0 != nil } && !isInPlace }

    func shardPath(_ number: Int) -> String { Self.shardPath(path, number) }

    static func shardPath(_ path: String, _ number: Int) -> String {
        path + "/" + shardName(number)
    }

    private static func shardName(_ number: Int) -> String {
        "s" + (number < 10 ? "0" : "") + String(number)
    }

    /// Takes the directory's lock, then reads or writes its manifest.
    static func open(
        _ configuration: DiskConfiguration,
        _ geometry: DiskGeometry,
        nowSeconds: Int64,
        _ volume: Volume
    ) throws(CacheError) -> DiskDirectory {
        let path = configuration.directory
        try makeRoot(path, volume)
        // Before the lock is taken: the lock creates a file, and a foreign directory must stay
        // unchanged.
        _ = try ManifestSearch(path, list(path, volume), configuration, volume, mends: false)
        let lock = try takeLock(path, volume)
        do throws(CacheError) {
            let names = try list(path, volume)
            let search = try ManifestSearch(path, names, configuration, volume, mends: true)
            let isFresh = search.manifest == nil
            let current: Manifest
            if let known = search.manifest {
                current = known
            } else {
                current = try layOut(path, names, geometry, nowSeconds, volume)
            }
            for number in 0..<current.shardCount {
                do throws(FileFault) {
                    try makeDirectory(shardPath(path, number), volume)
                } catch { throw unusable(path, error) }
            }
            if isFresh { try? volume.synchronizeDirectory(path) }
            return DiskDirectory(path, (current, isFresh, search.notes), volume, lock)
        } catch {
            release(lock, volume)
            throw error
        }
    }

    static func unusable(_ path: String, _ fault: FileFault) -> CacheError {
        if fault == .tooManyFiles {
            return CacheError(
                .directoryUnusable,
                detail: "The directory \(path) cannot be used: \(fault.text); "
                    + "raise the limit with ulimit -n"
            )
        }
        return CacheError(
            .directoryUnusable,
            detail: "The directory \(path) cannot be used: \(fault.text)"
        )
    }

    private static func takeLock(_ path: String, _ volume: Volume) throws(CacheError) -> OpenFile {
        let file: OpenFile
        do throws(FileFault) {
            file = try volume.open(path + "/" + lockName, .openOrCreate)
        } catch { throw unusable(path, error) }
        do throws(FileFault) {
            if !Mutant.ignoresTheLock.isOn { try volume.lock(file) }
            return file
        } catch {
            volume.close(file)
            guard error == .wouldWait else { throw unusable(path, error) }
            throw CacheError(
                .directoryInUse,
                detail: "The directory \(path) is used by another cache; give another one"
            )
        }
    }

    private static func release(_ lock: OpenFile, _ volume: Volume) {
        volume.unlock(lock)
        volume.close(lock)
    }

    private static func list(_ path: String, _ volume: Volume) throws(CacheError) -> [String] {
        do throws(FileFault) { return try volume.list(path) } catch { throw unusable(path, error) }
    }

    /// Removes the files of an older cache and writes a new manifest in two copies.
    private static func layOut(
        _ path: String,
        _ names: [String],
        _ geometry: DiskGeometry,
        _ nowSeconds: Int64,
        _ volume: Volume
    ) throws(CacheError) -> Manifest {
        let manifest = Manifest(
            storeID: .random(),
            seed: .random(),
            shardCount: geometry.shardCount,
            segmentBytes: geometry.segmentBytes,
            createdSeconds: UInt64(max(0, nowSeconds))
        )
        do throws(FileFault) {
            // The manifests are removed first: without them the remaining files are no cache any
            // more.
            for name in ManifestSearch.names where names.contains(name) {
                try volume.unlink(path + "/" + name)
            }
            for number in 0..<Manifest.shardCountMax { empty(shardPath(path, number), volume) }
            for name in ManifestSearch.names {
                try ManifestSearch.write(manifest, as: name, in: path, volume)
            }
        } catch { throw unusable(path, error) }
        return manifest
    }

    /// Unlinks the segments and bodies in a shard's directory, and nothing else.
    private static func empty(_ directory: String, _ volume: Volume) {
        guard let names = try? volume.list(directory) else { return }
        for name in names
        where DiskShard.slot(named: name) != nil || BodyFileFormat.fileID(named: name) != nil {
            try? volume.unlink(directory + "/" + name)
        }
    }

    private static func makeDirectory(_ path: String, _ volume: Volume) throws(FileFault) {
        do throws(FileFault) { try volume.makeDirectory(path) } catch {
            guard error == .exists else { throw error }
            // The existing path must be a directory itself, not a link to one.
            _ = try volume.list(path)
        }
    }

    /// Creates only the last component of the path: an unmounted mount point must not be filled.
    private static func makeRoot(_ path: String, _ volume: Volume) throws(CacheError) {
        do throws(FileFault) { try volume.makeDirectory(path) } catch {
            if error == .exists { return }
            guard error == .notFound else { throw unusable(path, error) }
            throw CacheError(
                .directoryUnusable,
                detail: "The directory above \(path) does not exist; create it, or mount it"
            )
        }
    }

    /// The bytes that `keep` was given; `nil` if there are no such bytes, or if they cannot be read.
    func bookmark() -> [UInt8]? {
        guard let file = try? volume.open(path + "/" + Self.bookmarkName, .existing) else {
            return nil
        }
        defer { volume.close(file) }
        var bytes = [UInt8](repeating: 0, count: Self.bookmarkBytesMax)
        let count = bytes.withUnsafeMutableBytes { bytes in
            (try? volume.read(file, into: bytes, at: 0)) ?? 0
        }
        return Array(bytes[..<count])
    }

    /// Replaces the bookmark.
    func keep(bookmark bytes: [UInt8]) throws(FileFault) {
        assert(bytes.count <= Self.bookmarkBytesMax, "the bookmark is read back whole")
        // Another cache may use the path by now.
        guard isInPlace else { throw .notFound }
        try volume.replace(
            path + "/" + Self.bookmarkName,
            with: bytes,
            draft: path + "/" + Self.bookmarkDraftName,
            isSynchronized: false
        )
    }

    /// Whether a cache creates files or directories of this name.
    static func isOwn(_ name: String) -> Bool {
        name == lockName || name == ManifestSearch.draftName || name == bookmarkName
            || name == bookmarkDraftName || ManifestSearch.names.contains(name)
            || isShard(name)
    }

    static func isShard(_ name: String) -> Bool {
        (0..<Manifest.shardCountMax).contains { shardName($0) == name }
    }
}

/// Whether the position in a fleet's log, kept beside the entries, may be trusted at an opening.
///
/// The position says that every removal before it is on the disk. Without `.onRemoval` only the
/// page cache may have those removals, while the position has reached the device. Therefore the
/// position has the identity of the boot in which it was written in front of it. In another boot it
/// is not trusted, and the fleet lets the origin confirm each entry.
///
///     <boot, or `synced`, or `-`> \n <position>
final class FleetPositionTrust: Sendable {
    private static let synced = "synced"
    private static let unknown = "-"

    private let isSynced: Bool
    private let bootID: String?
    /// Whether removals of this boot were written without being synchronised.
    private let hasUnsynchronized = Atomic(false)

    init(_ configuration: DiskConfiguration) {
        isSynced = configuration.durability == .onRemoval
        bootID = configuration.bootID
    }

    /// The bytes behind the mark; `nil` if they must not be trusted.
    func trusted(_ bookmark: [UInt8]) -> [UInt8]? {
        guard let end = bookmark.firstIndex(of: UInt8(ascii: "\n")) else { return nil }
        let rest = Array(bookmark[(end + 1)...])
        switch String(decoding: bookmark[..<end], as: UTF8.self) {
        case Self.synced: return rest
        case bootID:
            // The removals before it may be unsynchronised, whatever the durability is now.
            hasUnsynchronized.store(true, ordering: .relaxed)
            return rest
        default: return Mutant.trustsAnyBoot.isOn ? rest : nil
        }
    }

    /// The bookmark with its mark.
    func marked(_ bookmark: [UInt8]) -> [UInt8] {
        let mark =
            isSynced && !hasUnsynchronized.load(ordering: .relaxed)
            ? Self.synced : bootID ?? Self.unknown
        return Array("\(mark)\n".utf8) + bookmark
    }
}
