import Platform

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

    /// Writes the pieces of the body one behind the other, from the file's position on.
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
