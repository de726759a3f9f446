/// Several machines that share their purges.
///
/// A purge that one machine is given reaches every machine of the fleet, also those that are cut off
/// or switched off at that time. `CacheEngineRedis` has the fleet whose log is a stream in Redis.
public struct Fleet: Sendable {
    /// Makes the connection of one cache.
    package let makeRelay: @Sendable () throws -> any PurgeRelay

    package init(makeRelay: @escaping @Sendable () throws -> any PurgeRelay) {
        self.makeRelay = makeRelay
    }
}

/// The proof that the log of a fleet has taken a purge.
public struct FleetReceipt: Hashable, Sendable {
    /// The place of the purge in the log; a later purge has a larger one.
    public let position: UInt64
    /// The replicas of the log's server that confirmed the purge.
    public let replicas: Int
    /// The replicas that were connected to the log's server when the purge was taken.
    public let connectedReplicas: Int
    /// The machines that have applied the purge; `nil` if the purge did not wait for them, or if
    /// their reports cannot be read.
    public internal(set) var reach: FleetReach?

    package init(position: UInt64, replicas: Int, connectedReplicas: Int) {
        self.position = position
        self.replicas = replicas
        self.connectedReplicas = connectedReplicas
    }

    /// Whether the purge survives the loss of the log's server, as far as its replicas go.
    ///
    /// It is also `true` if the server has no replica, because then none can be late.
    public var isReplicated: Bool { replicas > 0 || connectedReplicas == 0 }
}

/// The machines of a fleet that a purge has reached.
public struct FleetReach: Hashable, Sendable {
    /// The machines that read the log and have reported within the last ten seconds, this one
    /// included.
    public let machines: Int
    /// The machines among them that have applied the purge: they serve nothing that it covers.
    public let applied: Int

    package init(machines: Int, applied: Int) {
        self.machines = machines
        self.applied = applied
    }

    /// Whether every machine that is known has applied the purge.
    public var isComplete: Bool { machines > 0 && applied == machines }
}

/// The moment at which a purge is answered.
public enum PurgeWait: String, Hashable, Sendable, CaseIterable {
    /// The log has taken the purge; the other machines apply it within milliseconds.
    case log
    /// The machines that read the log have applied the purge, or five seconds have passed.
    case fleet
}

/// The entries that a purge concerns.
public enum PurgeTarget: Sendable {
    /// All stored variants of the request's resource.
    case request(CacheRequest)
    /// The entries that carry the tag.
    case tag(String)
    /// Every entry.
    case everything
}

/// The result of a purge.
public struct PurgeReport: Sendable {
    /// The entries on this machine that were removed, as far as is known without reading a disk.
    ///
    /// A resource counts once, with all its variants, and so does one that a soft purge made stale. A
    /// soft purge of a tag or of everything counts nothing.
    public var entries = 0
    /// The receipt of the log; `nil` if the cache belongs to no fleet.
    public var receipt: FleetReceipt?

    /// A report without entries and receipt.
    public init() {}
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
