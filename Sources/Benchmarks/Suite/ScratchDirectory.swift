#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A directory of a workload's own, gone when the workload is done.
package final class ScratchDirectory {
    package let path: String

    package init(in parent: String) throws {
        let template = parent + "/cache-bench-XXXXXX"
        var bytes = template.utf8CString
        let made = bytes.withUnsafeMutableBufferPointer { bytes in
            bytes.baseAddress.map { mkdtemp($0) != nil } ?? false
        }
        guard made else {
            throw UsageError("\(parent): no directory can be made: \(TextFile.errorText(errno))")
        }
        path = bytes.withUnsafeBufferPointer { bytes in
            String(decoding: bytes.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
    }

    deinit { Self.remove(path) }

    /// A directory inside this one.
    func makeDirectory(_ name: String) throws -> String {
        let directory = path + "/" + name
        guard mkdir(directory, 0o700) == 0 else {
            throw UsageError("\(directory): \(TextFile.errorText(errno))")
        }
        return directory
    }

    /// The files below the directory, with their sizes.
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
    /// The first directory of these that can be written: benchmarks of a disk need a real one, and
    /// `/tmp` is often memory.
    package static var defaultScratchDirectory: String {
        let wished = getenv("BENCH_DIRECTORY").map { String(cString: $0) }
        let candidates = [wished, "/var/tmp", "/tmp"].compactMap { $0 }
        return candidates.first { access($0, W_OK) == 0 } ?? "."
    }
}
