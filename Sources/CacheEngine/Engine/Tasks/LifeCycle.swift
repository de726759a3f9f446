import Platform

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
    func shutDown() async {
        let (tiers, supervisor) = (services.tiers, services.supervisor)
        supervisor.close()
        for desk in services.desks { desk.abortAll(CacheError.cacheShutDown) }
        services.watchdog.abortAll(CacheError.cacheShutDown)
        await services.relay?.shutDown()
        // In separate tasks: the caller's may have been cancelled, and the cache must still shut
        // down.
        let executor = services.configuration.taskExecutor
        let ending = Task(executorPreference: executor) {
            await tiers.backing.drained()
            await supervisor.shutDown()
            await tiers.backing.finish()
        }
        let limit = services.configuration.maximumShutDownTime.nanoseconds
        let timer = Task(executorPreference: executor) { [clock = services.clock] in
            guard (try? await clock.sleep(nanoseconds: limit)) != nil else { return }
            ending.cancel()
        }
        await ending.value
        timer.cancel()
        await tiers.backing.close()
    }
}
