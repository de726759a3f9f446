import Synchronization

/// The directory of one cache on disk: its lock, its manifest, the shards' directories.
///
/// Held as long as the tier works; the lock goes with the last holder.
final class DiskDirectory: Sendable {
    static let lockName = "LOCK"
    static let manifestName = "MANIFEST"
    static let manifestDraftName = "MANIFEST.new"

    let path: String
    let manifest: Manifest
    /// Whether the directory was laid out by this opening.
    let isFresh: Bool
    private let volume: Volume
    private let lock: Mutex<OpenFile?>

    private init(
        _ path: String,
        _ manifest: Manifest,
        isFresh: Bool,
        _ volume: Volume,
        _ lock: OpenFile
    ) {
        self.path = path
        self.manifest = manifest
        self.isFresh = isFresh
        self.volume = volume
        self.lock = Mutex(lock)
    }

    deinit { unlock() }

    /// Lets another cache use the directory.
    func unlock() {
        let held = lock.withLock { lock in
            defer { lock = nil }
            return lock
        }
        if let held { Self.release(held, volume) }
    }

    func shardPath(_ number: Int) -> String { Self.shardPath(path, number) }

    private static func shardPath(_ path: String, _ number: Int) -> String {
        path + "/s" + (number < 10 ? "0" : "") + String(number)
    }

    /// Takes the directory's lock and reads or writes its manifest.
    static func open(
        _ configuration: DiskConfiguration,
        _ geometry: DiskGeometry,
        nowSeconds: Int64,
        _ volume: Volume
    ) throws(CacheError) -> DiskDirectory {
        let path = configuration.directory
        do throws(FileFault) {
            try makeDirectories(path, volume)
        } catch { throw unusable(path, error) }
        let lock = try takeLock(path, volume)
        do throws(CacheError) {
            let names = try list(path, volume)
            var manifest = try readManifest(path, names, volume)
            var isForeign = manifest == nil && names.contains { !isLockOrDraft($0) }
            if let known = manifest, !fits(known, configuration) {
                manifest = nil
                isForeign = false
            }
            guard !isForeign || configuration.foreignDirectory == .startEmpty else {
                throw CacheError(
                    .directoryForeign,
                    detail: "\(path) holds no cache of this version, or a damaged one"
                )
            }
            let isFresh = manifest == nil
            let current: Manifest
            if let manifest {
                current = manifest
            } else {
                current = try layOut(path, names, geometry, nowSeconds, volume)
            }
            for number in 0..<current.shardCount {
                do throws(FileFault) {
                    try makeDirectory(shardPath(path, number), volume)
                } catch { throw unusable(path, error) }
            }
            if isFresh { try? volume.synchronizeDirectory(path) }
            return DiskDirectory(path, current, isFresh: isFresh, volume, lock)
        } catch {
            release(lock, volume)
            throw error
        }
    }

    /// A manifest whose segments do not fit the capacity any more gives way to a new layout.
    private static func fits(_ manifest: Manifest, _ configuration: DiskConfiguration) -> Bool {
        let reserved = DiskGeometry.reservedBytes(shardCount: manifest.shardCount)
        let share = (configuration.capacityBytes - reserved) / manifest.shardCount
        return share / manifest.segmentBytes >= DiskGeometry.segmentsPerShardMin
    }

    private static func unusable(_ path: String, _ fault: FileFault) -> CacheError {
        CacheError(.directoryUnusable, detail: "\(path): \(fault.text)")
    }

    private static func takeLock(_ path: String, _ volume: Volume) throws(CacheError) -> OpenFile {
        let file: OpenFile
        do throws(FileFault) {
            file = try volume.open(path + "/" + lockName, .openOrCreate)
        } catch { throw unusable(path, error) }
        do throws(FileFault) {
            try volume.lock(file)
            return file
        } catch {
            volume.close(file)
            guard error == .wouldWait else { throw unusable(path, error) }
            throw CacheError(.directoryInUse, detail: "\(path) is used by another cache")
        }
    }

    private static func release(_ lock: OpenFile, _ volume: Volume) {
        volume.unlock(lock)
        volume.close(lock)
    }

    private static func list(_ path: String, _ volume: Volume) throws(CacheError) -> [String] {
        do throws(FileFault) { return try volume.list(path) } catch { throw unusable(path, error) }
    }

    private static func readManifest(
        _ path: String,
        _ names: [String],
        _ volume: Volume
    ) throws(CacheError) -> Manifest? {
        guard names.contains(manifestName) else { return nil }
        let file: OpenFile
        do throws(FileFault) {
            file = try volume.open(path + "/" + manifestName, .existing)
        } catch {
            // A link or a directory in its place is a foreign directory; anything else is trouble.
            guard error == .tooManyFiles || error == .inputOutput || error == .noPermission else {
                return nil
            }
            throw unusable(path, error)
        }
        defer { volume.close(file) }
        // One byte more than there should be: a longer file is not ours.
        var bytes = [UInt8](repeating: 0, count: Manifest.sizeBytes + 1)
        var fault: FileFault?
        let count = bytes.withUnsafeMutableBytes { bytes -> Int in
            do throws(FileFault) { return try volume.read(file, into: bytes, at: 0) } catch {
                fault = error
                return 0
            }
        }
        if let fault { throw unusable(path, fault) }
        return bytes[..<count].withUnsafeBytes { Manifest(decoding: $0) }
    }

    /// Removes what an older cache left and writes a new manifest.
    private static func layOut(
        _ path: String,
        _ names: [String],
        _ geometry: DiskGeometry,
        _ nowSeconds: Int64,
        _ volume: Volume
    ) throws(CacheError) -> Manifest {
        var random = SystemRandomNumberGenerator()
        let manifest = Manifest(
            storeID: KeyHash(placement: random.next(), identity: random.next()),
            seed: KeyHasher.random().seed,
            shardCount: geometry.shardCount,
            segmentBytes: geometry.segmentBytes,
            createdSeconds: UInt64(max(0, nowSeconds))
        )
        do throws(FileFault) {
            // The manifest goes first: without it, what is left is no cache any more.
            if names.contains(manifestName) { try volume.unlink(path + "/" + manifestName) }
            for number in 0..<Manifest.shardCountMax {
                empty(shardPath(path, number), volume)
            }
            try write(manifest.encoded, path, volume)
        } catch { throw unusable(path, error) }
        return manifest
    }

    private static func write(_ bytes: [UInt8], _ path: String, _ volume: Volume) throws(FileFault)
    {
        let draft = path + "/" + manifestDraftName
        try? volume.unlink(draft)
        let file = try volume.open(draft, .createNew)
        defer { volume.close(file) }
        var fault: FileFault?
        bytes.withUnsafeBytes { bytes in
            do throws(FileFault) {
                try volume.write(file, from: bytes, at: 0)
                try volume.synchronize(file)
            } catch { fault = error }
        }
        if let fault { throw fault }
        try volume.rename(draft, to: path + "/" + manifestName)
        try volume.synchronizeDirectory(path)
    }

    /// Unlinks segments and bodies in a shard's directory, and nothing else.
    private static func empty(_ directory: String, _ volume: Volume) {
        guard let names = try? volume.list(directory) else { return }
        for name in names where name.hasSuffix(".seg") || name.hasSuffix(BodyFileFormat.nameEnding)
        {
            try? volume.unlink(directory + "/" + name)
        }
    }

    private static func isLockOrDraft(_ name: String) -> Bool {
        name == lockName || name == manifestDraftName
    }

    private static func makeDirectory(_ path: String, _ volume: Volume) throws(FileFault) {
        do throws(FileFault) { try volume.makeDirectory(path) } catch {
            guard error == .exists else { throw error }
            // Whatever is there must be a directory of its own, not a link to one.
            _ = try volume.list(path)
        }
    }

    private static func makeDirectories(_ path: String, _ volume: Volume) throws(FileFault) {
        do throws(FileFault) { try volume.makeDirectory(path) } catch {
            switch error {
            case .exists: return
            case .notFound:
                guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else {
                    throw error
                }
                try makeDirectories(String(path[..<slash]), volume)
                try volume.makeDirectory(path)
            default: throw error
            }
        }
    }
}
