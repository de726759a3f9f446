#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// Ends another thread's wait.
///
/// Whoever holds it must not use it once the poller is closed.
struct SocketWaker: Sendable {
    let descriptor: Int32

    func wake() {
        // Eight bytes: an eventfd takes nothing else. A full pipe is awake already.
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }
}
