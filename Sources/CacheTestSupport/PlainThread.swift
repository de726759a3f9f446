#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// A thread of the system's own, outside the pool that runs tasks.
///
/// What blocks, or runs jobs of an executor by itself, belongs on one.
public enum PlainThread {
    /// Carries a closure to the thread.
    private final class Errand: Sendable {
        let body: @Sendable () -> Void
        init(_ body: @escaping @Sendable () -> Void) { self.body = body }
    }

    /// Bytes of stack: simulations nest deeper than a thread's usual share on some systems.
    private static let stackBytes = 4 << 20

    /// Runs `body` on a new thread and suspends until it is done.
    public static func run<Result: Sendable>(
        _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        await withUnsafeContinuation { continuation in
            start { continuation.resume(returning: body()) }
        }
    }

    /// Runs `body` on a new thread.
    public static func start(_ body: @escaping @Sendable () -> Void) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        pthread_attr_setstacksize(&attributes, stackBytes)
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        let errand = Unmanaged.passRetained(Errand(body)).toOpaque()
        #if canImport(Darwin)
            var thread: pthread_t?
        #else
            var thread = pthread_t()
        #endif
        let status = pthread_create(
            &thread,
            &attributes,
            { argument in
                #if canImport(Darwin)
                    let pointer: UnsafeMutableRawPointer? = argument
                #else
                    let pointer = argument
                #endif
                if let pointer { Unmanaged<Errand>.fromOpaque(pointer).takeRetainedValue().body() }
                return nil
            },
            errand
        )
        precondition(status == 0, "No thread could be started")
        pthread_attr_destroy(&attributes)
    }
}
