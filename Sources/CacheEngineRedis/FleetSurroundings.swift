package import CacheEngine

/// The clock, the executor, the chance and the patience of one machine, which a simulation or a
/// test replaces.
package struct FleetSurroundings: Sendable {
    package var clock: any CacheClock
    /// The executor of the fleet's own tasks; `nil` for the global one of the process.
    package var executor: (any TaskExecutor)?
    /// Returns a number of the range.
    package var random: @Sendable (ClosedRange<UInt64>) -> UInt64
    package var patience: Patience

    /// The time that a request may lose to the shared store: at most the first two together, and the
    /// wait for another machine.
    package struct Patience: Sendable {
        /// The limit for the reply to one command.
        package var replyLimit = Duration.milliseconds(25)
        /// The time of commands after which no other one is begun.
        package var spentNanosecondsMax: UInt64 = 35_000_000
        /// The time that a request spends on waiting for another machine's response.
        package var waitNanosecondsMax: UInt64 = 2_000_000_000

        package init() {}
    }

    package init(
        clock: any CacheClock = SystemClock(),
        executor: (any TaskExecutor)? = nil,
        random: @escaping @Sendable (ClosedRange<UInt64>) -> UInt64 = { .random(in: $0) },
        patience: Patience = Patience()
    ) {
        self.clock = clock
        self.executor = executor
        self.random = random
        self.patience = patience
    }

    var nowNanoseconds: UInt64 { clock.monotonicNanoseconds }

    /// Starts a task of the fleet, on the executor of `AwaitedWork` if there is one.
    @discardableResult
    func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: AwaitedWork.executor ?? executor) { await body() }
    }
}
