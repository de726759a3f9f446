import Platform
import Synchronization

/// The access log of all workers.
///
/// One call appends whole lines, so lines never mix.
package final class AccessLogFile: Sendable {
    private let path: String
    private let descriptor: Mutex<Int32>

    /// Opens `path` for appending; `-` is standard output.
    package init(_ path: String) throws(SystemError) {
        self.path = path
        let opened = Self.open(path)
        guard opened >= 0 else { throw SystemError(.openLog, path) }
        descriptor = Mutex(opened)
    }

    deinit {
        let last = descriptor.withLock { $0 }
        if last > 2 { closeDescriptor(last) }
    }

    /// Opens the path again, after the file was moved away.
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
                let count = Platform.write(descriptor, base + offset, bytes.count - offset)
                if count < 0, errno == EINTR { continue }
                // A full device must not stop the proxy.
                guard count > 0 else { return }
                offset += count
            }
        }
    }

    private static func open(_ path: String) -> Int32 {
        if path == "-" { return 1 }
        let flags = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC
        return Platform.open(path, flags, 0o640)
    }
}
