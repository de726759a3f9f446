import Platform

/// A flag for which threads wait; one that is raised before the wait is not lost.
///
/// `@unchecked Sendable`: the lock and the condition are created once and used only by calls of the
/// system; `isRaised` is read and written only under the lock.
final class ThreadFlag: @unchecked Sendable {
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    private let condition = UnsafeMutablePointer<pthread_cond_t>.allocate(capacity: 1)
    private var isRaised = false

    init() {
        pthread_mutex_init(lock, nil)
        pthread_cond_init(condition, nil)
    }

    deinit {
        pthread_cond_destroy(condition)
        pthread_mutex_destroy(lock)
        condition.deallocate()
        lock.deallocate()
    }

    /// Raises the flag, and wakes every thread that waits.
    func raise() {
        pthread_mutex_lock(lock)
        isRaised = true
        pthread_cond_broadcast(condition)
        pthread_mutex_unlock(lock)
    }

    /// Blocks the thread until the flag is raised.
    func wait() {
        pthread_mutex_lock(lock)
        while !isRaised { pthread_cond_wait(condition, lock) }
        pthread_mutex_unlock(lock)
    }

    /// The same, and lowers the flag, for a thread that waits alone.
    func waitAndLower() {
        pthread_mutex_lock(lock)
        while !isRaised { pthread_cond_wait(condition, lock) }
        isRaised = false
        pthread_mutex_unlock(lock)
    }
}
