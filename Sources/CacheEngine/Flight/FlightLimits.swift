/// How far the collapsing of concurrent misses goes before a request is left alone.
///
/// Every limit is met by refusing, never by stalling.
public struct FlightLimits: Hashable, Sendable {
    /// Flights at one time, in the whole cache; beyond it requests fetch for themselves.
    public var flightsMax = 65_536
    /// Requests that wait for one flight.
    public var waitersMax = 100_000
    /// Origin requests that one crowd may cost while each of them fails.
    public var attemptsMax = 3
    /// Seconds for which the error of a failed crowd answers those who come next.
    public var sharedErrorSeconds = 1.0
    /// Seconds a request waits for somebody else's answer before it asks for itself.
    public var waitSecondsMax = 10.0
    /// Requests per key that may have left a flight for waiting too long and be asking.
    public var escapesMax = 16
    /// Seconds for which a key whose answer could not be shared is not collapsed again.
    public var hitForMissSeconds = 5.0
    /// How often a request looks, waits and looks again before it asks for itself.
    public var lookUpsMax = 8
    /// Origin requests of one key at one time, from the request to the end of the body.
    ///
    /// The others queue. Nil for no limit: answers that never end hold their places.
    public var originRequestsPerKeyMax: Int?
    /// Seconds until a failed background refresh is tried again; doubles up to 32 times this.
    public var refreshBackOffSeconds = 1.0
    /// Seconds after which a flight without a head gives its key to a new one.
    public var ageSecondsMax = 60.0
    /// What becomes of a flight that nobody waits for any more.
    public var abandoned = Abandoned.finish

    /// What becomes of a flight that nobody waits for any more.
    public enum Abandoned: Hashable, Sendable {
        /// It goes on, and its answer is stored.
        case finish
        /// It is cancelled, unless its head has arrived.
        case cancel
    }

    /// The usual limits.
    public init() {}
}
