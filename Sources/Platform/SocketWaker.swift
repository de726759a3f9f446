/// Ends another thread's wait.
///
/// It must not be used after the poller is closed.
package struct SocketWaker: Sendable {
    let descriptor: Int32

    package func wake() {
        // An eventfd accepts only eight bytes. If the pipe is full, the thread is already being
        // woken.
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }
}
