import Platform

/// The bytes of a trace: a file, an archive that its own program unpacks, or the standard input.
struct TraceSource {
    let path: String

    /// The name without its folders and the ending of an archive.
    var name: String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        for ending in [".zst", ".gz"] where name.hasSuffix(ending) {
            return String(name.dropLast(ending.count))
        }
        return name
    }

    /// Calls `take` with piece after piece.
    func read(_ take: ([UInt8]) throws -> Void) throws {
        if path.hasSuffix(".zst") { return try unpack("zstd", take) }
        if path.hasSuffix(".gz") { return try unpack("gzip", take) }
        if path == "-" { return try read(0, take) }
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw TextFile.unreadable(path) }
        defer { close(file) }
        try read(file, take)
    }

    private func unpack(_ program: String, _ take: ([UInt8]) throws -> Void) throws {
        let unpacking = try Subprocess([program, "-dc", "--", path])
        while let bytes = try unpacking.receiveBytes() { try take(bytes) }
        guard unpacking.finish() == 0 else {
            throw UsageError("\(path): \(program) cannot unpack the file; get it again")
        }
    }

    private func read(_ file: Int32, _ take: ([UInt8]) throws -> Void) throws {
        while true {
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            let count = chunk.withUnsafeMutableBytes {
                Platform.read(file, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TextFile.unreadable(path) }
            guard count > 0 else { return }
            try take(Array(chunk[..<count]))
        }
    }
}
