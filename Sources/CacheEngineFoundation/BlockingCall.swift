internal import CacheEngine
internal import Dispatch
internal import Foundation
internal import Synchronization

/// Blocks the calling thread until asynchronous work ends, because `URLCache`'s methods are
/// synchronous.
///
/// The work and the tasks that it begins prefer the threads of `OwnThreads`, so that they run even if
/// callers block all threads of Swift's pool.
final class BlockingCall<Result: Sendable>: Sendable {
    private let result = Mutex<Result?>(nil)
    private let done = DispatchSemaphore(value: 0)

    static func wait(for work: @escaping @Sendable () async -> Result) -> Result {
        let call = BlockingCall()
        Task(executorPreference: OwnThreads.shared) {
            let result = await AwaitedWork.$executor.withValue(OwnThreads.shared) { await work() }
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

/// The threads that run the work of blocking callers.
///
/// They belong neither to Swift's pool nor to Dispatch: blocking callers may occupy all of those
/// threads.
///
/// `@unchecked Sendable`: `jobs` is read and written under `condition` alone.
private final class OwnThreads: TaskExecutor, @unchecked Sendable {
    static let shared = OwnThreads()

    /// Few threads are enough: the work is short and rarely waits.
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
