internal import CLZ4
import Platform

/// The physical floor of a disk cache: one file, known offsets, pread and LZ4.
///
/// It has no checksum, no index, no key comparison and no allocation; the two buffers are reused.
/// Any time beyond this is the cost of the cache.
final class DiskFloor {
    private struct Place {
        let offset: Int
        let storedCount: Int
    }

    let path: String
    private let file: Int32
    private let bodySizeBytes: Int
    private var places: [Place] = []
    private var stored: [UInt8]
    private var raw: [UInt8]

    init(path: String, entryCount: Int, bodySizeBytes: Int) throws {
        self.path = path
        self.bodySizeBytes = bodySizeBytes
        file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TextFile.unwritable(path) }
        stored = [UInt8](repeating: 0, count: Int(LZ4_compressBound(Int32(bodySizeBytes))))
        raw = [UInt8](repeating: 0, count: bodySizeBytes)
        var offset = 0
        for number in 0..<entryCount {
            raw.withUnsafeMutableBytes { BodyPool.shared.copyBody(number, into: $0) }
            let count = Self.compress(raw, into: &stored)
            guard count > 0, pwrite(file, stored, count, off_t(offset)) == count else {
                throw WorkloadFailure("\(path): a write of \(count) bytes failed")
            }
            places.append(Place(offset: offset, storedCount: count))
            offset += count
        }
    }

    deinit { close(file) }

    /// Reads and decompresses one body, and returns whether it is the right one.
    func isHit(_ number: Int) -> Bool {
        let place = places[number]
        let count = stored.withUnsafeMutableBytes { bytes in
            pread(file, bytes.baseAddress, place.storedCount, off_t(place.offset))
        }
        guard count == place.storedCount else { return false }
        let size = Int32(bodySizeBytes)
        let decompressed = stored.withUnsafeBytes { stored in
            raw.withUnsafeMutableBytes { raw in
                LZ4_decompress_safe(
                    stored.baseAddress?.assumingMemoryBound(to: CChar.self),
                    raw.baseAddress?.assumingMemoryBound(to: CChar.self),
                    Int32(count),
                    size
                )
            }
        }
        return decompressed == size && raw[0] == MemoryFixture.firstByte(number)
    }

    static func compress(_ raw: [UInt8], into stored: inout [UInt8]) -> Int {
        raw.withUnsafeBytes { raw in
            stored.withUnsafeMutableBytes { stored in
                Int(
                    LZ4_compress_default(
                        raw.baseAddress?.assumingMemoryBound(to: CChar.self),
                        stored.baseAddress?.assumingMemoryBound(to: CChar.self),
                        Int32(raw.count),
                        Int32(stored.count)
                    )
                )
            }
        }
    }
}

/// Removes files from the page cache, so that the next read goes to the device.
enum PageCache {
    /// The number of pages that may stay, because something uses them at the moment.
    private static let keptPagesMax = 256

    /// Removes the files of a directory, and throws if the system keeps most of their pages.
    ///
    /// Files in memory, as those of tmpfs, have no device. The engine's own look at the page cache
    /// does not notice: such files refuse it, and each read seems to wait.
    static func drop(_ scratch: ScratchDirectory, isChecked: Bool) throws {
        var (before, after) = (0, 0)
        for file in scratch.files() where file.sizeBytes > 0 {
            let pages = try drop(file.path, file.sizeBytes)
            before += pages.before
            after += pages.after
        }
        try WorkloadFailure.require(
            !isChecked || after <= max(keptPagesMax, before / 2),
            "disk-hit-cold: \(scratch.path): the page cache keeps \(after) of \(before) pages; "
                + "give another --directory"
        )
    }

    private static func drop(
        _ path: String,
        _ sizeBytes: Int
    ) throws -> (before: Int, after: Int) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw TextFile.unreadable(path) }
        defer { close(file) }
        let before = pageCount(file, sizeBytes)
        // The system can drop only pages that have been written to the device.
        fsync(file)
        #if os(Linux)
            posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
        #else
            _ = fcntl(file, F_NOCACHE, 1)
        #endif
        return (before, pageCount(file, sizeBytes))
    }

    /// The pages of a file in the page cache; 0 if the system does not say.
    private static func pageCount(_ file: Int32, _ sizeBytes: Int) -> Int {
        #if os(Linux)
            guard let start = mmap(nil, sizeBytes, PROT_READ, MAP_SHARED, file, 0),
                start != MAP_FAILED
            else { return 0 }
            defer { munmap(start, sizeBytes) }
            let pageBytes = Machine.pageBytes
            var pages = [UInt8](repeating: 0, count: (sizeBytes + pageBytes - 1) / pageBytes)
            guard mincore(start, sizeBytes, &pages) == 0 else { return 0 }
            return pages.count { $0 & 1 == 1 }
        #else
            return 0
        #endif
    }
}
