internal import Dispatch
internal import Foundation
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

/// The threads that serve blocking callers: outside Swift's pool and outside Dispatch, whose
/// threads may all be blocked by those very callers.
///
/// `@unchecked Sendable`: `jobs` is read and written under `condition` alone.
private final class OwnThreads: TaskExecutor, @unchecked Sendable {
    static let shared = OwnThreads()

    /// The work is short and rarely waits.
    private static let count = 4

    private let condition = NSCondition()
    private var jobs: [UnownedJob] = []

    private init() {
        for _ in 0..<Self.count { Thread.detachNewThread { self.run() } }
    }

    func enqueue(_ job: consuming ExecutorJob) {
        condition.lock()
        jobs.append(UnownedJob(job))
        condition.signal()
        condition.unlock()
    }

    private func run() {
        while true {
            condition.lock()
            while jobs.isEmpty { condition.wait() }
            let job = jobs.removeFirst()
            condition.unlock()
            job.runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
