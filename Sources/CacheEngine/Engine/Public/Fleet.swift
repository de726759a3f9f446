/// Several machines that share their purges.
///
/// A purge that one machine is given reaches every machine of the fleet, also those that are cut off
/// or switched off at that time. `CacheEngineRedis` has the fleet whose log is a stream in Redis.
public struct Fleet: Sendable {
    /// Whether the connection of a cache will have a shared tier, as far as it is known before.
    package let sharesEntries: Bool
    /// Makes the connection of one cache.
    package let makeRelay: @Sendable () throws -> any PurgeRelay

    package init(
        sharesEntries: Bool = false,
        makeRelay: @escaping @Sendable () throws -> any PurgeRelay
    ) {
        self.sharesEntries = sharesEntries
        self.makeRelay = makeRelay
    }
}

/// The counts of a cache that belongs to a fleet.
public struct FleetStatistics: Hashable, Sendable {
    /// Whether the log was read to its end at the last attempt.
    public var isLinked = false
    /// The time since the log was last known to be read to its end; up to a second if all is well.
    public var lag = Duration.zero
    /// Whether a server of the log is not asked for a while, because it failed.
    public var isSuspended = false
    /// Whether a server of the shared store is not asked for a while, because it failed.
    public var isStoreSuspended = false
    /// The commands for servers of the fleet that have no outcome so far.
    public var commandsWaiting = 0
    /// The commands that were not sent, because too many waited or their server was suspended.
    public var commandsRefused = 0
    /// The purges of this machine that the log has taken.
    public var appended = 0
    /// The purges of this machine that the log has not taken.
    public var refused = 0
    /// The purges of other machines that were applied here.
    public var applied = 0
    /// The purges that could not be applied, because the storage failed.
    public var notApplied = 0
    /// The times that a gap in the log was replayed.
    public var replays = 0
    /// The purges that the log had lost and that this machine has appended again.
    public var restored = 0
    /// The times that all entries were marked stale, because a purge may have been missed.
    public var allMarkedStale = 0
    /// The times that the log could not be read for longer than the permitted lag.
    public var cutOffs = 0
    /// The look-ups in the shared store that found a record; a response that varies takes two.
    public var sharedHits = 0
    /// The look-ups in the shared store after which this machine asked the origin.
    public var sharedMisses = 0
    /// The look-ups that waited for the response of another machine.
    public var sharedWaits = 0
    /// The look-ups that a failure of the shared store ended; each was a miss.
    public var sharedFailures = 0
    /// The readings of records that were damaged; each was a miss.
    public var sharedUnreadable = 0
    /// The responses that were copied into the shared store.
    public var published = 0
    /// The responses that the shared store has not taken.
    public var unpublished = 0

    /// Counts of zero.
    public init() {}
}
