/// What a cache is busy with; all zero when nobody waits for anything.
public struct WorkUnderWay: Hashable, Sendable {
    /// Keys that a flight is under way for.
    public var flights = 0
    /// Tasks of the cache's own.
    public var tasks = 0
    /// Keys with requests at the origin, where those are limited.
    public var limitedKeys = 0

    /// No work.
    public init() {}
}

extension HTTPCache {
    /// What the cache is busy with now: a look for leaks, and for a gauge.
    public var workUnderWay: WorkUnderWay {
        get async {
            var work = WorkUnderWay()
            for desk in desks { work.flights += await desk.count }
            work.tasks = supervisor.taskCount
            work.limitedKeys = gate?.keyCount ?? 0
            return work
        }
    }
}
