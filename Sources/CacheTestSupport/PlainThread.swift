package import Platform

/// A thread of the operating system, outside the pool that runs tasks.
///
/// Code that blocks, or that runs the jobs of an executor itself, belongs on such a thread.
public enum PlainThread {
    /// The bytes of the stack; simulations nest deeper than the default of some systems allows.
    private static let stackBytes = 4 << 20

    /// Runs `body` on a new thread and suspends until it returns.
    public static func run<Result: Sendable>(
        _ body: @escaping @Sendable () -> Result
    ) async -> Result {
        await withUnsafeContinuation { continuation in
            start { continuation.resume(returning: body()) }
        }
    }

    /// Runs `body` on a new thread.
    public static func start(_ body: @escaping @Sendable () -> Void) { begin(body).detach() }

    /// Runs `body` on a new thread, which the caller joins or detaches once.
    package static func begin(_ body: @escaping @Sendable () -> Void) -> SystemThread {
        do throws(SystemThread.Failure) {
            return try SystemThread(stackBytes: stackBytes, body)
        } catch {
            preconditionFailure("No thread could be started: error \(error.code)")
        }
    }
}
