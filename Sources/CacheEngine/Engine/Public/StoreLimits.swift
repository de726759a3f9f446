/// The limits beyond which the cache no longer waits for a custom store; the first is also that of a
/// disk.
///
/// Every wait for such a store ends at one of these limits, and at once if its task is cancelled.
public struct StoreLimits: Hashable, Sendable {
    /// The time that one call may take.
    ///
    /// A look-up that takes longer is a miss; any other call ends in
    /// `CacheError.Code.storageTimedOut`. A request waits for a disk no longer than this, nor than half
    /// of `OriginLimits.maximumHeadTime`, and goes on without it.
    public var maximumOperationTime = Duration.seconds(5.0)
    /// The most stores and removals under way at a time, each of a different key.
    public var maximumOperations = 16
    /// The most look-ups under way at a time; further ones are misses.
    public var maximumLookUps = 1_000
    /// The number of calls past their limit, not yet returned, at which calls stop.
    ///
    /// The store is then not called until one of them returns.
    public var maximumAbandoned = 64
    /// The total size of the entries that wait to be stored; further ones are refused.
    public var maximumQueuedSize = ByteCount.megabytes(64)
    /// The most keys with waiting stores and removals.
    ///
    /// Beyond this number the whole store is not read until everything in it has been removed.
    public var maximumQueuedKeys = 100_000
    /// The most keys whose removal failed.
    ///
    /// Beyond this number the whole store is not read until everything in it has been removed.
    public var maximumBarredKeys = 10_000
    /// The most removals by scope that failed.
    ///
    /// Beyond this number the whole store is not read until everything in it has been removed.
    public var maximumBarredScopes = 100
    /// The time until a failed removal is tried again; it doubles after each failure.
    public var minimumRetryDelay = Duration.seconds(0.1)
    /// The longest time until a failed removal is tried again.
    public var maximumRetryDelay = Duration.seconds(30.0)

    /// Creates the usual limits.
    public init() {}
}
