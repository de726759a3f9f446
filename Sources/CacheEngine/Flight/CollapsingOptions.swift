/// The limits of collapsing concurrent misses into one origin request.
///
/// Beyond most limits a request fetches on its own. Beyond `maximumEscapes` it goes on waiting;
/// beyond `maximumAttempts` it gets the error. `maximumOriginRequestsPerKey` makes requests queue.
public struct CollapsingOptions: Hashable, Sendable {
    /// The most concurrent flights; further requests fetch on their own.
    ///
    /// Each sixteenth of the keys has a sixteenth of this number.
    public var maximumFlights = 65_536
    /// The most requests that wait for one flight.
    public var maximumWaiters = 100_000
    /// The most origin requests of one flight while each of them fails.
    public var maximumAttempts = 3
    /// The time for which the error of an unreachable origin answers later requests.
    ///
    /// Other errors go only to the requests that waited.
    public var sharedErrorTime = Duration.seconds(1.0)
    /// The time that a request waits for another one's response before it fetches on its own.
    public var maximumWait = Duration.seconds(10.0)
    /// The most concurrent fetches per key by requests that left a flight after waiting too long.
    public var maximumEscapes = 16
    /// The time for which a key is not collapsed after a response that cannot be shared.
    ///
    /// If only the cookies of its request keep a response from being shared, the others are collapsed
    /// that have none.
    ///
    /// After a response that is too large to be stored, requests with conditions are sent as they
    /// came for as long, and the others are collapsed.
    public var hitForMissTime = Duration.seconds(5.0)
    /// The most times that a request looks and waits before it fetches on its own.
    public var maximumLookUps = 8
    /// The most concurrent origin requests of one key, from the request to the end of the body.
    ///
    /// Further requests queue. `nil` means no limit. A response that never ends keeps its place.
    public var maximumOriginRequestsPerKey: Int?
    /// The time until a failed background refresh is tried again.
    ///
    /// While the origin is unreachable, the delay doubles up to 32 times this value.
    public var refreshBackOff = Duration.seconds(1.0)
    /// The time after which a flight without a head gives its key to a new flight.
    ///
    /// The next request for the key then takes its place: what was sent is cancelled, also if the
    /// origin would still answer it, and all that wait join the new flight. `nil`, the default, means
    /// that no flight ends so: an attempt ends with the time of the request that was sent
    /// (`OriginLimits.maximumHeadTime`).
    public var maximumAge: Duration?
    /// How a flight without waiters is treated.
    public var abandoned = Abandoned.finish

    /// How a flight without waiters is treated.
    public enum Abandoned: Hashable, Sendable {
        /// The flight continues, and its response is stored.
        case finish
        /// The flight is cancelled, unless its head has arrived.
        case cancel
    }

    /// The default limits.
    public init() {}
}
