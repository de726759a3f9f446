/// The limits beyond which an origin's response is abandoned.
public struct OriginLimits: Hashable, Sendable {
    /// The longest time until the head of the response arrives.
    public var maximumHeadTime = Duration.seconds(60.0)
    /// The longest time between two pieces of a body that is being stored.
    ///
    /// If a body is not stored, a reader that takes nothing for this time no longer holds up the
    /// others. A body that its readers hold up for this time, because memory is short, is not stored.
    public var maximumIdleTime = Duration.seconds(60.0)
    /// The most field lines in a head.
    public var maximumFields = 1_000
    /// The largest head.
    public var maximumHeadSize = ByteCount.kilobytes(256)
    /// The part of a body kept in memory for its readers if the body is not stored; less if memory is
    /// short.
    public var windowSize = ByteCount.megabytes(4)

    /// Creates the usual limits.
    public init() {}
}
