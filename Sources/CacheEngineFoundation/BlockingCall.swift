internal import Dispatch
internal import Synchronization

/// Waits, on the calling thread, for asynchronous work: `URLCache`'s methods are synchronous.
///
/// The work prefers threads of its own, so that callers who block all threads of Swift's pool do
/// not keep it from running.
final class BlockingCall<Result: Sendable>: Sendable {
    private let result = Mutex<Result?>(nil)
    private let done = DispatchSemaphore(value: 0)

    static func wait(for work: @escaping @Sendable () async -> Result) -> Result {
        let call = BlockingCall()
        Task(executorPreference: OwnThreads.shared) {
            let result = await work()
            call.result.withLock { $0 = result }
            call.done.signal()
        }
        call.done.wait()
        guard let result = call.result.withLock({ $0 }) else {
            preconditionFailure("A blocking call was signalled before its end")
        }
        return result
    }
}

/// The threads that serve blocking callers.
private final class OwnThreads: TaskExecutor {
    static let shared = OwnThreads()

    private let queue = DispatchQueue(label: "CacheEngine.blocking", attributes: .concurrent)

    func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        queue.async { job.runSynchronously(on: self.asUnownedTaskExecutor()) }
    }
}
