import Platform
import Synchronization

/// A temporary directory of a workload, removed when the value is released.
package final class ScratchDirectory {
    /// The directories that are not removed yet.
    private static let present = Mutex<Set<String>>([])
    /// The attempts to remove a directory, with a pause after each.
    private static let attemptsMax = 100
    private static let pauseMilliseconds: Int32 = 10

    package let path: String

    package init(in parent: String) throws {
        let template = parent + "/cache-bench-XXXXXX"
        var bytes = template.utf8CString
        let made = bytes.withUnsafeMutableBufferPointer { bytes in
            bytes.baseAddress.map { mkdtemp($0) != nil } ?? false
        }
        guard made else {
            throw UsageError(
                "No directory can be created in \(parent): \(TextFile.errorText(errno)); "
                    + "give another with --directory"
            )
        }
        let path = bytes.withUnsafeBufferPointer { bytes in
            String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        self.path = path
        Self.present.withLock { _ = $0.insert(path) }
    }

    deinit {
        Self.remove(path)
        Self.present.withLock { [path] in _ = $0.remove(path) }
    }

    /// Removes all directories, because the program ends in the middle of its work.
    ///
    /// Other threads and peers may still create files in them, so a removal is repeated for a
    /// second.
    package static func removeAll() {
        for path in present.withLock({ $0 }) {
            for _ in 0..<attemptsMax {
                remove(path)
                if access(path, F_OK) != 0 { break }
                _ = poll(nil, 0, pauseMilliseconds)
            }
        }
    }

    /// Creates a directory inside this one.
    func makeDirectory(_ name: String) throws -> String {
        let directory = path + "/" + name
        guard mkdir(directory, 0o700) == 0 else {
            throw TextFile.unwritable(directory)
        }
        return directory
    }

    /// The files below the directory with their sizes.
    package func files() -> [(path: String, sizeBytes: Int)] { Self.files(below: path) }

    package static func files(below path: String) -> [(path: String, sizeBytes: Int)] {
        var files: [(path: String, sizeBytes: Int)] = []
        forEachEntry(of: path) { name in
            let path = path + "/" + name
            var status = stat()
            guard lstat(path, &status) == 0 else { return }
            if status.st_mode & S_IFMT == S_IFDIR {
                files += Self.files(below: path)
            } else {
                files.append((path, Int(status.st_size)))
            }
        }
        return files
    }

    private static func remove(_ path: String) {
        forEachEntry(of: path) { name in
            let path = path + "/" + name
            if unlink(path) != 0 { remove(path) }
        }
        rmdir(path)
    }

    private static func forEachEntry(of path: String, _ visit: (String) -> Void) {
        guard let directory = opendir(path) else { return }
        defer { closedir(directory) }
        while let entry = readdir(directory) {
            let name = withUnsafeBytes(of: entry.pointee.d_name) { bytes in
                String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
            }
            if name != "." && name != ".." { visit(name) }
        }
    }
}

extension WorkloadPlan {
    /// The first writable directory of `BENCH_DIRECTORY`, `/var/tmp` and `/tmp`.
    ///
    /// Disk benchmarks need a real disk, and `/tmp` is often in memory.
    package static var defaultScratchDirectory: String {
        let wished = getenv("BENCH_DIRECTORY").map { String(cString: $0) }
        let candidates = [wished, "/var/tmp", "/tmp"].compactMap { $0 }
        return candidates.first { access($0, W_OK) == 0 } ?? "."
    }
}
