/// A gate at which a server's script waits until the test opens it.
public final class LoopbackGate: Sendable {
    private let flag = ThreadFlag()

    /// Creates a closed gate.
    public init() {}

    /// Releases all threads that wait now or later.
    public func open() { flag.raise() }

    /// Blocks the thread until the gate is open.
    public func wait() { flag.wait() }
}
