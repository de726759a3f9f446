package import CacheEngine
import Platform

/// A fault of this machine, which counts against no origin: no file, port, thread or memory was left
/// for a socket, a connection, a look-up or an event loop.
///
/// The cache sees the code `originFailed`, as for every error of an origin that has no code.
package struct LocalLack: Error, CustomStringConvertible {
    package let shown: CacheError
    package var description: String { shown.detail }

    private init(_ shown: CacheError) { self.shown = shown }

    /// No socket could be opened or connected; `code` is the system's error number.
    package static func ofSocket(code: Int32) -> LocalLack {
        let reason = String(cString: strerror(code))
        return LocalLack(
            CacheError(.originFailed, detail: "Cannot open a socket to the origin: \(reason)")
        )
    }

    /// No event loop could be started.
    static func ofEventLoop(_ detail: String) -> LocalLack {
        LocalLack(CacheError(.originFailed, detail: detail))
    }

    /// The name could not be looked up.
    package static func ofLookUp(_ host: String, code: Int32) -> LocalLack {
        let reason = String(cString: strerror(code))
        return LocalLack(CacheError(.originFailed, detail: "Cannot look up \(host): \(reason)"))
    }
}
