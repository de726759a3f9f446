import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The file that all workers log to.
///
/// Whole lines are appended with one call, so they never mix.
package final class AccessLogFile: Sendable {
    private let path: String
    private let descriptor: Mutex<Int32>

    /// Opens `path` for appending; `-` is standard output.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        let opened = Self.open(path)
        guard opened >= 0 else { throw SystemError("Cannot open the access log \(path)") }
        descriptor = Mutex(opened)
    }

    deinit {
        let last = descriptor.withLock { $0 }
        if last > 2 { closeDescriptor(last) }
    }

    /// Opens the path anew: after something has moved the file away.
    package func reopen() {
        guard path != "-" else { return }
        let opened = Self.open(path)
        guard opened >= 0 else { return }
        let old = descriptor.withLock { descriptor in
            defer { descriptor = opened }
            return descriptor
        }
        closeDescriptor(old)
    }

    package func write(_ bytes: UnsafeRawBufferPointer) {
        descriptor.withLock { descriptor in
            var offset = 0
            while offset < bytes.count, let base = bytes.baseAddress {
                #if canImport(Glibc)
                    let count = Glibc.write(descriptor, base + offset, bytes.count - offset)
                #else
                    let count = Darwin.write(descriptor, base + offset, bytes.count - offset)
                #endif
                if count < 0, errno == EINTR { continue }
                // A log that cannot be written must not stop the proxy.
                guard count > 0 else { return }
                offset += count
            }
        }
    }

    private static func open(_ path: String) -> Int32 {
        if path == "-" { return 1 }
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC
        #if canImport(Glibc)
            return Glibc.open(path, flags, 0o640)
        #else
            return Darwin.open(path, flags, 0o640)
        #endif
    }
}
