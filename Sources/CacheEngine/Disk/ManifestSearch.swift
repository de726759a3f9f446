/// The manifest found in a directory, and the decision whether the directory belongs to a cache.
///
/// One valid copy of the two is enough; the other is repaired. If neither copy is valid, a
/// directory that only a cache can have made is laid out anew. Any other directory is refused, or
/// laid out anew if the configuration says so.
struct ManifestSearch {
    static let names = ["MANIFEST", "MANIFEST.2"]
    static let draftName = "MANIFEST.new"
    /// Names that exist in the root of a mounted file system.
    private static let systemNames = ["lost+found"]

    /// The manifest to use; `nil` if the directory must be laid out.
    private(set) var manifest: Manifest?
    private(set) var notes: [String] = []

    private enum Copy {
        case absent, damaged, otherVersion
        case whole(Manifest)
        case unreadable(FileFault)

        var text: String {
            switch self {
            case .absent: "missing"
            case .damaged, .whole: "damaged"
            case .otherVersion: "of another version"
            case .unreadable(let fault): "unreadable (\(fault.text))"
            }
        }
    }

    /// Reads both copies; `mends`, allowed only under the directory's lock, repairs a damaged one.
    ///
    /// - Throws: `.directoryForeign` if the directory holds files that no cache wrote.
    init(
        _ path: String,
        _ names: [String],
        _ configuration: DiskConfiguration,
        _ volume: Volume,
        mends: Bool
    ) throws(CacheError) {
        let copies = Self.names.map { Self.read($0, in: path, names, volume) }
        for copy in copies {
            if case .whole(let known) = copy, manifest == nil { manifest = known }
        }
        if let known = manifest {
            for (name, copy) in zip(Self.names, copies) where mends {
                if case .whole(known) = copy { continue }
                notes.append("\(path)/\(name) was \(copy.text) and has been written again")
                try? Self.write(known, as: name, in: path, volume)
            }
            // A layout whose segments no longer fit the capacity is replaced.
            if !Self.fits(known, configuration) { manifest = nil }
            return
        }
        for case .unreadable(let fault) in copies { throw DiskDirectory.unusable(path, fault) }
        let others = names.filter { !Self.systemNames.contains($0) }
        if others.allSatisfy({ $0 == DiskDirectory.lockName || $0 == Self.draftName }) { return }
        guard Self.isOurs(others, copies) || configuration.foreignDirectory == .startEmpty else {
            throw CacheError(
                .directoryForeign,
                detail: "The directory \(path) has files that no cache wrote; "
                    + "give an empty directory"
            )
        }
        let texts = zip(Self.names, copies).map { "\($0) is \($1.text)" }
        notes.append("In \(path), \(texts.joined(separator: ", ")); the cache starts empty")
    }

    /// Whether the names, or the beginning of a manifest, can only come from a cache.
    private static func isOurs(_ names: [String], _ copies: [Copy]) -> Bool {
        for case .otherVersion in copies { return true }
        return names.allSatisfy(DiskDirectory.isOwn)
            && names.contains { $0 == DiskDirectory.lockName || DiskDirectory.isShard($0) }
    }

    private static func fits(_ manifest: Manifest, _ configuration: DiskConfiguration) -> Bool {
        let share = DiskGeometry.shareBytes(
            configuration.capacityBytes,
            shardCount: manifest.shardCount
        )
        return share / manifest.segmentBytes >= DiskGeometry.segmentsPerShardMin
    }

    private static func read(
        _ name: String,
        in path: String,
        _ names: [String],
        _ volume: Volume
    ) -> Copy {
        guard names.contains(name) else { return .absent }
        do throws(FileFault) {
            let file = try volume.open(path + "/" + name, .existing)
            defer { volume.close(file) }
            // Reads one byte more than a manifest has, to detect a longer file, which is not a
            // manifest.
            var bytes = [UInt8](repeating: 0, count: Manifest.sizeBytes + 1)
            var fault: FileFault?
            let count = bytes.withUnsafeMutableBytes { bytes -> Int in
                do throws(FileFault) { return try volume.read(file, into: bytes, at: 0) } catch {
                    fault = error
                    return 0
                }
            }
            if let fault { throw fault }
            return bytes[..<count].withUnsafeBytes { bytes in
                if let manifest = Manifest(decoding: bytes) { return .whole(manifest) }
                return Manifest.isOfAnotherVersion(bytes) ? .otherVersion : .damaged
            }
        } catch {
            // A link or a directory in its place counts as damage; other errors are reported.
            let isTrouble =
                error.isExhaustion || error == .inputOutput || error == .noPermission
            return isTrouble ? .unreadable(error) : .damaged
        }
    }

    static func write(
        _ manifest: Manifest,
        as name: String,
        in path: String,
        _ volume: Volume
    ) throws(FileFault) {
        try volume.replace(
            path + "/" + name,
            with: manifest.encoded,
            draft: path + "/" + draftName,
            isSynchronized: true
        )
        try volume.synchronizeDirectory(path)
    }
}
