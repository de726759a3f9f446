import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct PendingAnswerTests {
    /// Runs a job before the call that brings it returns, as another thread may.
    private final class HastyExecutor: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) {
            UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
        }
    }

    /// A body that is read for long, unless its reading is cancelled.
    private final class Delivery: Sendable {
        private let task = Mutex<Task<Void, Never>?>(nil)
        private let wasCancelled = Atomic(false)

        func start(for answer: PendingAnswer) {
            let started = Task {
                let isCancelled = await eventually { Task.isCancelled }
                wasCancelled.store(isCancelled, ordering: .relaxed)
            }
            task.withLock { $0 = started }
            answer.attach(started)
        }

        func endsCancelled() async -> Bool {
            await task.withLock { $0 }?.value
            return wasCancelled.load(ordering: .relaxed)
        }
    }

    @Test func workOfTheResponseIsCancelledAlsoIfItsTaskIsNotedLater() async {
        let answer = PendingAnswer()
        let delivery = Delivery()
        answer.startTask(on: HastyExecutor()) { _ in
            delivery.start(for: answer)
        } _: {
            throw CancellationError()
        }
        answer.cancel()
        #expect(await delivery.endsCancelled())
    }
}
