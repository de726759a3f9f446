import Platform

/// The bytes of a trace: a file, an archive that its own program unpacks, or the standard input.
struct TraceSource {
    /// About a second of unpacking.
    private static let bytesAfterFaultMax = 256 << 20
    /// The programs that unpack archives, with the endings and the first bytes of these.
    private static let archives: [(program: String, ending: String, start: [UInt8])] = [
        ("zstd", ".zst", [0x28, 0xB5, 0x2F, 0xFD]),
        // The third byte names the only method of compression (RFC 1952 §2.3.1).
        ("gzip", ".gz", [0x1F, 0x8B, 0x08]),
    ]

    let path: String

    /// The name without its folders and the ending of an archive.
    var name: String {
        let name = path.split(separator: "/").last.map(String.init) ?? path
        for archive in Self.archives where name.hasSuffix(archive.ending) {
            return String(name.dropLast(archive.ending.count))
        }
        return name
    }

    /// The program that unpacks bytes with this start; `nil` if they are no archive.
    static func unpacker(of start: [UInt8]) -> String? {
        archives.first { start.starts(with: $0.start) }?.program
    }

    /// Takes a piece, of which an unpacked file has `total` bytes in all.
    typealias Take = (_ piece: [UInt8], _ total: Int?) throws -> Void

    /// Calls `take` with piece after piece.
    func read(_ take: Take) throws {
        if path == "-" { return try read(0, take) }
        let file = try opened()
        defer { close(file) }
        let named = Self.archives.first { path.hasSuffix($0.ending) }?.program
        if let program = named ?? Self.unpacker(of: Self.start(of: file)) {
            return try unpack(program, take)
        }
        try read(file, take)
    }

    /// The first bytes of a file; empty for a pipe, whose bytes are read only once.
    private static func start(of file: Int32) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 4)
        let count = bytes.withUnsafeMutableBytes { pread(file, $0.baseAddress, $0.count, 0) }
        return Array(bytes.prefix(max(0, count)))
    }

    private func opened() throws -> Int32 {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { throw TextFile.unreadable(path) }
        return file
    }

    private func unpack(_ program: String, _ take: Take) throws {
        let unpacking = try Subprocess([program, "-dc", "--", path], errors: .kept)
        let fault = try receive(from: unpacking, take)
        let complaint = try unpacking.receiveErrors()
        guard unpacking.finish() == 0 else {
            let reason = reason(complaint, program)
            throw UsageError("\(path): \(program) cannot unpack the file\(reason); get it again")
        }
        if let fault { throw fault }
    }

    /// Returns the error of a wrong line once the program has ended.
    ///
    /// A damaged archive gives wrong lines before its program notices the damage. If many more
    /// bytes follow, the error is thrown at once.
    private func receive(
        from unpacking: Subprocess,
        _ take: Take
    ) throws -> (any Error)? {
        var fault: (any Error)?
        var bytesLeft = Self.bytesAfterFaultMax
        while let bytes = try unpacking.receiveBytes() {
            guard let fault else {
                do { try take(bytes, nil) } catch { fault = error }
                continue
            }
            bytesLeft -= bytes.count
            if bytesLeft < 0 { throw fault }
        }
        return fault
    }

    /// The last line of the complaint without the names that our own error has.
    private func reason(_ complaint: String, _ program: String) -> String {
        let blanks: Set<Character> = [" ", ":", "\r"]
        guard
            var rest = complaint.split(separator: "\n").last(where: {
                !$0.allSatisfy(blanks.contains)
            })
        else { return "" }
        for name in ["\(program):", path] where rest.hasPrefix(name) {
            rest = rest.dropFirst(name.count).drop(while: blanks.contains)
        }
        while let last = rest.last, blanks.contains(last) { rest.removeLast() }
        return ": \(rest)"
    }

    private func read(_ file: Int32, _ take: Take) throws {
        var status = stat()
        let isFile = fstat(file, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
        let total: Int? = isFile ? Int(status.st_size) : nil
        while true {
            var chunk = [UInt8](repeating: 0, count: 1 << 16)
            let count = chunk.withUnsafeMutableBytes {
                Platform.read(file, $0.baseAddress, $0.count)
            }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw TextFile.unreadable(path) }
            guard count > 0 else { return }
            try take(Array(chunk[..<count]), total)
        }
    }
}
