import Platform

/// Bodies as files.
extension HTTPCache {
    /// Answers the request and writes the body to `path`.
    ///
    /// A file at `path` is replaced only once the body is complete.
    ///
    /// - Returns: The response, with an empty body.
    public func download(
        _ request: CacheRequest,
        to path: String,
        policy: CachePolicy? = nil
    ) async throws -> CacheResponse {
        var response = try await respond(to: request, policy: policy)
        let unfinished = path + ".part-\(UInt64.random(in: 0...UInt64.max))"
        do {
            try await BodyFile.write(response.body, to: unfinished)
            guard rename(unfinished, path) == 0 else { throw BodyFile.failed("rename", path) }
        } catch {
            unlink(unfinished)
            throw error
        }
        response.body = .empty
        return response
    }

    /// Answers the request and lends the body to `read` as a read-only file, which is then deleted.
    public func withBodyFile<Result>(
        for request: CacheRequest,
        policy: CachePolicy? = nil,
        _ read: (_ path: String, _ response: CacheResponse) async throws -> Result
    ) async throws -> Result {
        var response = try await respond(to: request, policy: policy)
        let folder = getenv("TMPDIR").map { String(cString: $0) } ?? "/tmp"
        let path = "\(folder)/cache-body-\(getpid())-\(UInt64.random(in: 0...UInt64.max))"
        defer { unlink(path) }
        try await BodyFile.write(response.body, to: path)
        chmod(path, 0o400)
        response.body = .empty
        return try await read(path, response)
    }
}

/// Writes bodies to files.
private enum BodyFile {
    static func write(_ body: BodyStream, to path: String) async throws {
        let file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw failed("open", path) }
        defer { close(file) }
        for try await chunk in body {
            try chunk.withUnsafeBytes { try write($0, to: file, path) }
        }
    }

    private static func write(
        _ bytes: UnsafeRawBufferPointer,
        to file: Int32,
        _ path: String
    ) throws {
        var offset = 0
        while offset < bytes.count {
            let rest = UnsafeRawBufferPointer(rebasing: bytes[offset...])
            #if canImport(Glibc)
                let written = Glibc.write(file, rest.baseAddress, rest.count)
            #else
                let written = Darwin.write(file, rest.baseAddress, rest.count)
            #endif
            if written < 0, errno == EINTR { continue }
            guard written > 0 else { throw failed("write", path) }
            offset += written
        }
    }

    static func failed(_ call: String, _ path: String) -> CacheError {
        CacheError(
            .storageFailed,
            detail: "Cannot \(call) the file \(path) of a body: \(String(cString: strerror(errno)))"
        )
    }
}
