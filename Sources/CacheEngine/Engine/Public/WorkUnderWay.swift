/// The work that a cache does now; every count is 0 if the cache is idle.
public struct WorkUnderWay: Hashable, Sendable {
    /// The keys with a flight under way.
    public var flights = 0
    /// The cache's own tasks.
    public var tasks = 0
    /// The keys with requests at the origin, if such requests are limited.
    public var limitedKeys = 0

    /// Creates a value without work.
    public init() {}
}
