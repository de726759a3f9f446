#if canImport(Glibc)
    internal import Glibc
#elseif canImport(Darwin)
    internal import Darwin
#endif

/// A door that a server's script waits at until the test opens it.
///
/// `@unchecked Sendable`: the lock and the condition are made once and touched only by the
/// system's own calls; `isOpen` is read and written under the lock alone.
public final class LoopbackGate: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isOpen = false

    /// A closed gate.
    public init() {
        pthread_mutex_init(lock, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(lock)
        condition.deallocate()
        lock.deallocate()
    }

    /// Lets whoever waits, or comes, through.
    public func open() {
        pthread_mutex_lock(lock)
        isOpen = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(lock)
    }

    /// Blocks the thread until the gate is open.
    public func wait() {
        pthread_mutex_lock(lock)
        while !isOpen { pthread_cond_wait(condition, lock) }
        pthread_mutex_unlock(lock)
    }
}
