import Platform

/// Reads and writes whole text files.
package enum TextFile {
    package static func read(_ path: String) throws -> String {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw unreadable(path) }
        defer { close(descriptor) }
        return String(decoding: try readAll(descriptor, path), as: UTF8.self)
    }

    package static func write(_ text: String, to path: String) throws {
        try write(Array(text.utf8), to: path)
    }

    /// Throws if the file cannot be written; what it contains stays as it is.
    package static func checkWritable(_ path: String) throws {
        let isNew = access(path, F_OK) != 0
        let descriptor = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw unwritable(path) }
        close(descriptor)
        if isNew { unlink(path) }
    }

    static func write(_ bytes: [UInt8], to path: String) throws {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
        guard descriptor >= 0 else { throw unwritable(path) }
        defer { close(descriptor) }
        try bytes.withUnsafeBytes { bytes in
            var offset = 0
            while offset < bytes.count {
                let written = Self.write(descriptor, bytes, from: offset)
                guard written > 0 else { throw unwritable(path) }
                offset += written
            }
        }
    }

    /// Reads to the end of the file or pipe.
    static func readAll(_ descriptor: Int32, _ name: String) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = chunk.withUnsafeMutableBytes { read(descriptor, $0) }
            if count < 0, errno == EINTR { continue }
            guard count >= 0 else { throw unreadable(name) }
            guard count > 0 else { return bytes }
            bytes += chunk[..<count]
        }
    }

    private static func read(_ file: Int32, _ into: UnsafeMutableRawBufferPointer) -> Int {
        Platform.read(file, into.baseAddress, into.count)
    }

    static func write(_ file: Int32, _ from: UnsafeRawBufferPointer, from offset: Int) -> Int {
        while true {
            let rest = UnsafeRawBufferPointer(rebasing: from[offset...])
            let count = Platform.write(file, rest.baseAddress, rest.count)
            if count >= 0 || errno != EINTR { return count }
        }
    }

    /// The error for a file that the last system call could not open or read.
    static func unreadable(_ path: String) -> UsageError {
        UsageError("\(path) cannot be read: \(errorText(errno))")
    }

    /// The error for a file that the last system call could not create or write.
    static func unwritable(_ path: String) -> UsageError {
        UsageError("\(path) cannot be written: \(errorText(errno))")
    }

    /// The system's text for an error number.
    static func errorText(_ number: Int32) -> String {
        strerror(number).map { String(cString: $0) } ?? "error \(number)"
    }
}
