import Platform

/// A gate at which a server's script waits until the test opens it.
///
/// `@unchecked Sendable`: the lock and the condition are created once and used only by calls of the
/// system; `isOpen` is read and written only under the lock.
public final class LoopbackGate: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isOpen = false

    /// Creates a closed gate.
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

    /// Releases all threads that wait now or later.
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
