import Platform

/// The bytes that a download writes and that the next one continues, and what they are part of.
///
///     movie.mp4.part       the bytes
///     movie.mp4.part-of    the URL and the entity tag of their response, each on a line
///
/// If there is a second file, the bytes are those that it names, whenever the process ends: the old
/// second file is removed first, then the new one is written if the new bytes can be continued, then
/// the bytes. One download at a time has the files; its lock ends when it closes the first one, and
/// with the process.
final class PartialFile {
    private let file: BodyFile
    private let notePath: String
    private(set) var count: Int
    /// Whether the files no longer have their names, under which another download may have its own.
    private var isGone = false

    /// The longest note that is read.
    private static let noteBytesMax = 16 << 10

    /// Takes the files beside `path`; returns `nil` if another download has them.
    init?(beside path: String) throws {
        let file = try BodyFile(path + ".part", O_RDWR, permissions: 0o666)
        guard flock(file.descriptor, LOCK_EX | LOCK_NB) == 0 else { return nil }
        // The holder of the lock may have moved or removed the file since it was opened.
        var (held, named) = (stat(), stat())
        guard fstat(file.descriptor, &held) == 0, stat(file.path, &named) == 0,
            held.st_ino == named.st_ino, held.st_dev == named.st_dev
        else { return nil }
        self.file = file
        notePath = path + ".part-of"
        count = Int(held.st_size)
    }

    /// The entity tag of the response that the bytes are part of; `nil` if they cannot be continued.
    func tag(of url: String) -> String? {
        guard count > 0, let note = try? Self.read(notePath) else { return nil }
        let lines = note.split(separator: "\n", omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0].utf8.elementsEqual(url.utf8), lines[2].isEmpty else {
            return nil
        }
        return String(lines[1])
    }

    /// Drops the bytes, and begins with those of a response that has the entity tag.
    ///
    /// Without a tag they cannot be continued later.
    func begin(_ url: String, tag: String?) throws {
        unlink(notePath)
        guard ftruncate(file.descriptor, 0) == 0 else {
            throw BodyFile.failed("truncate", file.path)
        }
        count = 0
        guard let tag else { return }
        let note = try BodyFile(creating: notePath, permissions: 0o600)
        var text = "\(url)\n\(tag)\n"
        try text.withUTF8 { try note.append(UnsafeRawBufferPointer($0)) }
    }

    /// Writes the body after the bytes; `report` is called with the count after each piece.
    func append(_ body: BodyStream, _ report: (Int) -> Void) async throws {
        guard lseek(file.descriptor, off_t(count), SEEK_SET) == count else {
            throw BodyFile.failed("seek in", file.path)
        }
        try await file.append(body) {
            count += $0
            report(count)
        }
    }

    /// The bytes are complete: they become the file at `path`.
    func finish(as path: String) throws {
        // Before the move: after it the note could be that of the next download.
        unlink(notePath)
        try file.move(to: path)
        isGone = true
    }

    /// Leaves the bytes to the next download if it can continue them.
    func leave(_ url: String) {
        if tag(of: url) == nil { remove() }
    }

    /// Removes both files; does nothing the second time.
    func remove() {
        if isGone, !Mutant.unlinksPartsOfOthers.isOn { return }
        isGone = true
        unlink(notePath)
        unlink(file.path)
    }

    private static func read(_ path: String) throws -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw BodyFile.failed("open", path) }
        defer { close(descriptor) }
        var bytes = [UInt8](repeating: 0, count: noteBytesMax)
        let count = bytes.withUnsafeMutableBytes {
            Platform.read(descriptor, $0.baseAddress, $0.count)
        }
        guard count >= 0 else { throw BodyFile.failed("read", path) }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }
}

/// An open file that a body is written to.
final class BodyFile: Sendable {
    let path: String
    let descriptor: Int32

    /// Creates the file, which must not exist.
    convenience init(creating path: String, permissions: mode_t) throws {
        try self.init(path, O_WRONLY | O_EXCL, permissions: permissions)
    }

    /// Opens the file, or creates it with the permissions, without those that the umask takes away.
    init(_ path: String, _ flags: Int32, permissions: mode_t) throws {
        self.path = path
        descriptor = open(path, flags | O_CREAT | O_CLOEXEC, permissions)
        guard descriptor >= 0 else { throw Self.failed("open", path) }
    }

    deinit { close(descriptor) }

    /// Writes the pieces of the body one after the other, from the file's position on.
    ///
    /// `report` is called with the number of bytes of each piece.
    func append(_ body: BodyStream, _ report: (Int) -> Void = { _ in }) async throws {
        for try await chunk in body {
            try chunk.withUnsafeBytes { try append($0) }
            report(chunk.count)
        }
    }

    func append(_ bytes: UnsafeRawBufferPointer) throws {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            let written = Platform.write(descriptor, rest.baseAddress, rest.count)
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw Self.failed("write", path) }
            offset += written
        }
    }

    /// Gives the file the name `target`, in place of the file that has it.
    func move(to target: String) throws {
        guard rename(path, target) == 0 else { throw Self.failed("rename", path) }
    }

    static func failed(_ call: String, _ path: String) -> CacheError {
        CacheError(
            .storageFailed,
            detail: "Cannot \(call) the file \(path) of a body: \(String(cString: strerror(errno)))"
        )
    }
}
