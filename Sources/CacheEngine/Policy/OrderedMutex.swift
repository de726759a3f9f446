import Synchronization

/// A mutex whose order a race detector can see.
///
/// The contended path of the library's mutex is not instrumented, so ThreadSanitizer would take what
/// it guards for a race. The flag repeats the mutex's order where it is seen; on the processors we
/// know it costs a plain load and a plain store.
struct OrderedMutex<Value: ~Copyable & Sendable>: ~Copyable, Sendable {
    private let mutex: Mutex<Value>
    private let order = Atomic<UInt8>(0)

    init(_ value: consuming sending Value) { mutex = Mutex(value) }

    func withLock<Result: ~Copyable>(_ body: (inout Value) -> sending Result) -> sending Result {
        mutex.withLock { value in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            return body(&value)
        }
    }

    /// Nothing happens when another thread holds the lock.
    func withLockIfAvailable(_ body: (inout Value) -> Void) {
        _ = mutex.withLockIfAvailable { value in
            _ = order.load(ordering: .acquiring)
            defer { order.store(0, ordering: .releasing) }
            body(&value)
        }
    }
}
