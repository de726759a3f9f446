/// A purge as it travels between machines.
package struct SharedPurge: Hashable, Sendable {
    /// The entries that it concerns.
    package enum Scope: Hashable, Sendable {
        /// The bytes of a resource's key; the hash of a key differs from machine to machine.
        case key([UInt8])
        case tag(String)
        case everything
    }

    package let scope: Scope
    /// Whether entries become stale instead of being removed.
    package let isSoft: Bool

    package init(_ scope: Scope, isSoft: Bool) {
        self.scope = scope
        self.isSoft = isSoft
    }
}

/// The way of purges to other machines, and from them.
package protocol PurgeRelay: Sendable {
    /// Begins to deliver purges to `receiver`; called once, before the cache answers.
    ///
    /// Returns when every purge that the other machines made so far is applied, or when that takes
    /// too long.
    func start(_ receiver: any PurgeReceiver) async

    /// Purges were given to this machine and are about to be applied; `share` follows.
    func announce(_ purges: [SharedPurge])

    /// Hands over purges that were given to this machine.
    ///
    /// If `areApplied`, the receiver must not be given them back.
    ///
    /// - Throws: `CacheError`, if it is not certain that the other machines get them.
    func share(_ purges: [SharedPurge], areApplied: Bool) async throws -> FleetReceipt

    /// Waits until the machines that read the log have applied the purges of a receipt, for a
    /// bounded time; returns `nil` if that is not known.
    func reach(of receipt: FleetReceipt) async -> FleetReach?

    /// The store that the machines share; `nil` if they share purges alone.
    var sharedTier: (any SharedTier)? { get }

    /// The counts so far.
    var statistics: FleetStatistics { get }

    /// Ends the delivery.
    func shutDown() async
}

extension PurgeRelay {
    package var sharedTier: (any SharedTier)? { nil }
    package func announce(_ purges: [SharedPurge]) {}
    package func reach(of receipt: FleetReceipt) async -> FleetReach? { nil }
}

/// The cache as a relay sees it.
package protocol PurgeReceiver: Sendable {
    /// Whether entries may be stored that are older than this process.
    var mayHoldOlderEntries: Bool { get }

    /// Applies a purge of another machine; it survives the end of the process once this returns.
    ///
    /// `whenApplied` is called, at most once, as soon as the purge holds in this process; at the latest
    /// it holds when this returns, also if the storage fails.
    func apply(_ purge: SharedPurge, whenApplied: () -> Void) async throws

    /// Every purge up to `position` holds in this process; later fetches see what it changed.
    func note(position: UInt64)

    /// Makes all entries stale that are stored now; the origin must confirm each before it is used.
    ///
    /// `whenApplied` is called as in `apply`.
    func markEverythingStale(whenApplied: () -> Void) async throws

    /// Returns the bytes that `keep` was given last, perhaps by an earlier process.
    func bookmark() async -> [UInt8]?

    /// Keeps a few bytes as long as the entries; without a disk they are dropped.
    func keep(bookmark: [UInt8]) async throws

    /// Passes an event to the application.
    func report(_ event: CacheEvent)
}
