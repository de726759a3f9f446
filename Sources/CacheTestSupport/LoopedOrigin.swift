package import CacheEngine
import Synchronization

/// An origin that an event loop asks without a task, in front of any other.
package final class LoopedOrigin: LoopOrigin {
    private let origin: any Origin
    private let executor: any TaskExecutor

    /// Creates an origin that passes requests on to `origin`, on `executor`.
    package init(_ origin: any Origin, on executor: any TaskExecutor) {
        self.origin = origin
        self.executor = executor
    }

    package var isOnLoop: Bool { true }

    package func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        try await origin.fetch(request)
    }

    package func begin(
        _ request: consuming OriginRequest,
        _ completion: @escaping @Sendable (consuming LoopAnswer) -> Void
    ) -> (any LoopExchange)? {
        let exchange = Exchange(completion)
        let request = request
        exchange.task.attach(
            Task(executorPreference: executor) { [origin] in
                do {
                    exchange.end(.response(try await origin.fetch(request)))
                } catch { exchange.end(.failure(error)) }
            }
        )
        return exchange
    }

    /// One exchange; it ends when it is cancelled, whatever the origin does then.
    private final class Exchange: LoopExchange {
        let task = TaskHandle()
        private let completion: Mutex<(@Sendable (consuming LoopAnswer) -> Void)?>

        init(_ completion: @escaping @Sendable (consuming LoopAnswer) -> Void) {
            self.completion = Mutex(completion)
        }

        func end(_ answer: consuming LoopAnswer) {
            let completion = completion.withLock { $0.take() }
            completion?(answer)
        }

        func cancel() {
            task.cancel()
            end(.failure(CancellationError()))
        }
    }
}
