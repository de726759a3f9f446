package import CacheEngine

/// The clock, the executor and the chance of one machine, which a simulation replaces.
package struct FleetSurroundings: Sendable {
    package var clock: any CacheClock
    /// The executor of the fleet's own tasks; `nil` for the global one of the process.
    package var executor: (any TaskExecutor)?
    /// Returns a number of the range.
    package var random: @Sendable (ClosedRange<UInt64>) -> UInt64

    package init(
        clock: any CacheClock = SystemClock(),
        executor: (any TaskExecutor)? = nil,
        random: @escaping @Sendable (ClosedRange<UInt64>) -> UInt64 = { .random(in: $0) }
    ) {
        self.clock = clock
        self.executor = executor
        self.random = random
    }

    var nowNanoseconds: UInt64 { clock.monotonicNanoseconds }

    /// Starts a task of the fleet.
    @discardableResult
    func start(_ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: executor) { await body() }
    }
}
