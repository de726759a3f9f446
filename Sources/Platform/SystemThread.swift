/// A thread of the operating system, for code that blocks or that runs an executor's jobs.
package struct SystemThread {
    /// The reason why the system started no thread: an error number.
    package struct Failure: Error {
        package let code: Int32
    }

    /// A closure, boxed to pass through the C interface.
    private final class Work: Sendable {
        let run: @Sendable () -> Void
        init(_ run: @escaping @Sendable () -> Void) { self.run = run }
    }

    private let handle: pthread_t

    /// Starts a thread that runs `run`, with a stack of `stackBytes` or of the system's default.
    ///
    /// The caller must call `join` or `detach` once.
    package init(
        stackBytes: Int? = nil,
        _ run: @escaping @Sendable () -> Void
    ) throws(Failure) {
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        if let stackBytes { pthread_attr_setstacksize(&attributes, stackBytes) }
        // The new thread releases the work that is retained here.
        let work = Unmanaged.passRetained(Work(run))
        #if canImport(Glibc)
            var handle = pthread_t()
            let code = pthread_create(&handle, &attributes, { Self.body($0) }, work.toOpaque())
            let started: pthread_t? = handle
        #else
            var started: pthread_t?
            let code = pthread_create(&started, &attributes, { Self.body($0) }, work.toOpaque())
        #endif
        guard code == 0, let started else {
            work.release()
            throw Failure(code: code)
        }
        self.handle = started
    }

    /// Starts a detached thread that blocks all signals; returns `false` if the system starts none.
    package static func startWithoutSignals(_ run: @escaping @Sendable () -> Void) -> Bool {
        let thread = try? SystemThread {
            var signals = sigset_t()
            sigfillset(&signals)
            pthread_sigmask(SIG_SETMASK, &signals, nil)
            run()
        }
        thread?.detach()
        return thread != nil
    }

    /// Waits for the end of the thread.
    package func join() { pthread_join(handle, nil) }

    /// Lets the thread end by itself.
    package func detach() { pthread_detach(handle) }

    /// A number of the calling thread, unique among the living threads.
    package static var currentNumber: UInt {
        #if canImport(Glibc)
            UInt(pthread_self())
        #else
            UInt(bitPattern: pthread_self())
        #endif
    }

    private static func body(_ work: UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? {
        if let work { Unmanaged<Work>.fromOpaque(work).takeRetainedValue().run() }
        return nil
    }
}
