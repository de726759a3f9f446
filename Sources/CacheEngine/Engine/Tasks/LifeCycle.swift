import Platform
import Synchronization

/// The periodic work of a cache, and its shutdown.
struct LifeCycle {
    let services: Services

    private static let releaseNanoseconds: UInt64 = 5_000_000_000

    /// Releases the memory of removed entries periodically until the task is cancelled or the cache
    /// is closed, then shuts down.
    ///
    /// Otherwise the last ones would wait for the next change.
    func run() async {
        // Closing the cache cancels it.
        let releasing = services.supervisor.start(.watching) { [services] in
            while (try? await services.clock.sleep(nanoseconds: Self.releaseNanoseconds)) != nil {
                services.tiers.memory.releaseRetired()
            }
        }
        await withTaskCancellationHandler {
            await releasing.value
        } onCancel: {
            releasing.cancel()
        }
        await shutDown()
    }

    /// Ends all work within the configured time, and writes out every accepted entry.
    ///
    /// A disk that hangs is left alone: it writes the entries, and releases its directory, once it goes
    /// on.
    func shutDown() async {
        let (backing, supervisor) = (services.tiers.backing, services.supervisor)
        supervisor.close()
        for desk in services.desks { desk.abortAll(CacheError.cacheShutDown) }
        services.watchdog.abortAll(CacheError.cacheShutDown)
        // In separate tasks: the caller's may have been cancelled, and the cache must still shut
        // down.
        let executor = services.configuration.taskExecutor
        let ending = Task(executorPreference: executor) { [relay = services.relay] in
            await Self.waitUnlessCancelled(on: executor) { await relay?.shutDown() }
            await backing.drained()
            await supervisor.shutDown()
            await backing.finish()
        }
        let (isOver, closing) = (Race<Void>(), Closing(services))
        Task(executorPreference: executor) {
            await ending.value
            closing.begin()
            await backing.close()
            isOver.finish(.success(()))
        }
        let limit = services.configuration.maximumShutDownTime.nanoseconds
        let timer = Task(executorPreference: executor) { [clock = services.clock] in
            guard (try? await clock.sleep(nanoseconds: limit)) != nil else { return }
            ending.cancel()
            if Mutant.waitsForTheDisk.isOn { return }
            let rest = backing.endWaits(forWork: true) ? 0 : closing.restNanoseconds
            if rest > 0, (try? await clock.sleep(nanoseconds: rest)) == nil { return }
            isOver.finish(.success(()))
        }
        try? await isOver.resultDespiteCancellation()
        timer.cancel()
        backing.endWaits(forWork: false)
    }

    /// Waits for `work`; returns at once when the task is cancelled.
    private static func waitUnlessCancelled(
        on executor: (any TaskExecutor)?,
        _ work: @escaping @Sendable () async -> Void
    ) async {
        let hasEnded = Race<Void>()
        Task(executorPreference: executor) {
            await work()
            hasEnded.finish(.success(()))
        }
        try? await hasEnded.result()
    }
}

/// The time in which the disk closes.
///
/// Work that ignores its cancellation may take the whole time of the shutdown. A disk that works then
/// still gets the time of one operation, because it needs little; one that does not close in that
/// time hangs.
private final class Closing: Sendable {
    private static let leastNanoseconds: UInt64 = 1_000_000_000

    private let clock: any CacheClock
    private let limitNanoseconds: UInt64
    private let begunNanoseconds = Atomic<UInt64>(.max)

    init(_ services: Services) {
        clock = services.clock
        let limits = services.configuration.backing.storeLimits
        limitNanoseconds = max(
            Self.leastNanoseconds,
            min(
                limits.maximumOperationTime.nanoseconds,
                services.configuration.maximumShutDownTime.nanoseconds
            )
        )
    }

    func begin() {
        begunNanoseconds.store(clock.monotonicNanoseconds, ordering: .relaxed)
    }

    var restNanoseconds: UInt64 {
        let begun = begunNanoseconds.load(ordering: .relaxed)
        let now = clock.monotonicNanoseconds
        let taken = now > begun ? now - begun : 0
        return limitNanoseconds - min(limitNanoseconds, taken)
    }
}
