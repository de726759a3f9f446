/// Starts flights and knows which are under way, for the keys of one shard.
///
/// The actor owns the tables; what waits and what is answered lives in each `Flight`. Every table
/// is bounded: when one is full, requests fetch for themselves and nobody stalls.
///
/// Invariant: `flights` holds a flight under its own key until it has ended or another has taken
/// its place, and under its variant's key as long.
actor FlightDesk<Request: Sendable, Answer: Sendable> {
    typealias Member = Flight<Request, Answer>

    private struct BackOff {
        var failures: Int
        var untilNanoseconds: UInt64
    }

    private struct SharedError {
        var error: any Error
        var untilNanoseconds: UInt64
    }

    private let limits: FlightLimits
    private let flightsMax: Int
    private var flights: [KeyHash: Member] = [:]
    private var hitForMissUntil: [KeyHash: UInt64] = [:]
    private var sharedErrors: [KeyHash: SharedError] = [:]
    private var backOffs: [KeyHash: BackOff] = [:]
    private var escapes: [KeyHash: Int] = [:]

    /// Entries of one side table; beyond it what was known is forgotten.
    private static var sideTableMax: Int { 4_096 }

    init(limits: FlightLimits, desks: Int) {
        self.limits = limits
        flightsMax = max(1, limits.flightsMax / max(1, desks))
    }

    // MARK: Boarding

    /// What boarding came to.
    enum Boarding {
        case aboard(Member, Member.Place)
        case outcome(FlightOutcome<Answer>)
    }

    /// What only the caller of `board` can tell; asked with the desk to itself.
    struct Circumstances {
        /// Whether the flight under way is too old for this request: what it brings was removed
        /// after it began, or its answer came before the request and must be newer.
        var isOutdated: (Member) -> Bool = { _ in false }
        /// Whether the store has changed since the request looked: a flight may have landed.
        var hasNews: () -> Bool = { false }
        /// Starts the leading task; nil for a request that can follow but not lead.
        var lead: ((Member) -> Task<Void, Never>)?
    }

    /// Joins the flight of `key`, or starts one where the request may lead.
    func board(
        _ key: KeyHash,
        _ request: Request,
        nowNanoseconds: UInt64,
        _ circumstances: Circumstances
    ) -> Boarding {
        if let flight = current(key, nowNanoseconds) {
            if !circumstances.isOutdated(flight) {
                return .aboard(flight, flight.join(request, nowNanoseconds: nowNanoseconds))
            }
            // A request that cannot lead leaves the flight to those who can use it.
            guard circumstances.lead != nil else { return .outcome(.goAlone(.requested)) }
            flight.retire()
            remove(flight)
        }
        if let known = knownOutcome(key, nowNanoseconds) { return .outcome(known) }
        guard let lead = circumstances.lead else { return .outcome(.goAlone(.requested)) }
        guard flights.count < flightsMax else { return .outcome(.goAlone(.tableFull)) }
        if circumstances.hasNews() { return .outcome(.lookAgain) }
        let isWanted = limits.abandoned == .finish
        let flight = register(key, request, isWanted: isWanted, nowNanoseconds)
        let place = flight.join(request, as: .leader, nowNanoseconds: nowNanoseconds)
        flight.attach(lead(flight))
        return .aboard(flight, place)
    }

    /// Starts a flight that nobody waits for, unless one is under way or the last one failed.
    func refresh(
        _ key: KeyHash,
        _ request: Request,
        nowNanoseconds: UInt64,
        _ circumstances: Circumstances
    ) -> Bool {
        if let flight = current(key, nowNanoseconds) {
            guard circumstances.isOutdated(flight) else { return false }
            flight.retire()
            remove(flight)
        }
        if let backOff = backOffs[key], backOff.untilNanoseconds > nowNanoseconds { return false }
        guard flights.count < flightsMax, !circumstances.hasNews(), let lead = circumstances.lead
        else { return false }
        let flight = register(key, request, isWanted: true, nowNanoseconds)
        flight.attach(lead(flight))
        return true
    }

    /// The flight under way that can still be joined.
    private func current(_ key: KeyHash, _ nowNanoseconds: UInt64) -> Member? {
        guard let flight = flights[key] else { return nil }
        if flight.isUnanswered {
            let limit = flight.startedNanoseconds + Self.nanoseconds(limits.ageSecondsMax)
            guard nowNanoseconds >= limit else { return flight }
            flight.giveUp()
        } else if !flight.isOver {
            return flight
        }
        remove(flight)
        return nil
    }

    /// What a flight of this key came to a moment ago.
    private func knownOutcome(
        _ key: KeyHash,
        _ nowNanoseconds: UInt64
    ) -> FlightOutcome<Answer>? {
        if let known = sharedErrors[key] {
            if known.untilNanoseconds > nowNanoseconds {
                return .failed(known.error, isShared: true)
            }
            sharedErrors[key] = nil
        }
        if let until = hitForMissUntil[key] {
            if until > nowNanoseconds { return .goAlone(.hitForMiss) }
            hitForMissUntil[key] = nil
        }
        return nil
    }

    private func register(
        _ key: KeyHash,
        _ founder: Request,
        isWanted: Bool,
        _ nowNanoseconds: UInt64
    ) -> Member {
        let flight = Member(
            key: key,
            founder: founder,
            machine: FlightStateMachine(
                isWanted: isWanted,
                waitersMax: limits.waitersMax,
                attemptsMax: limits.attemptsMax
            ),
            startedNanoseconds: nowNanoseconds
        )
        flights[key] = flight
        return flight
    }

    // MARK: Landing

    /// Whether `flight` still holds its key.
    func isCurrent(_ flight: Member) -> Bool { flights[flight.key] === flight }

    /// What it brings is stored: whoever asks from now on finds it there, and those who wait are
    /// still told.
    func withdraw(_ flight: Member) { remove(flight) }

    /// The flight is over; the key is free.
    func end(_ flight: Member) {
        remove(flight)
        flight.land()
    }

    private func remove(_ flight: Member) {
        if flights[flight.key] === flight { flights[flight.key] = nil }
        if let key = flight.variantKey, flights[key] === flight { flights[key] = nil }
    }

    /// The answer varies: runs `body` with nothing else of this shard's in between, and puts the
    /// flight that holds `licence` under the key that `body` finds as well.
    func settleVariant<Result: Sendable>(
        of key: KeyHash,
        _ licence: FlightLicence?,
        _ body: @Sendable () -> (Result, KeyHash)
    ) -> Result {
        let (result, variantKey) = body()
        if let licence, let flight = flights[key], flight.licence === licence,
            flights[variantKey] == nil
        {
            // An attempt that was given up may have found another.
            if let earlier = flight.variantKey, flights[earlier] === flight {
                flights[earlier] = nil
            }
            flight.variantKey = variantKey
            flights[variantKey] = flight
        }
        return result
    }

    // MARK: What is known of a key

    /// Every attempt of the flight failed; for a while its error answers those who come next.
    func noteFailure(of flight: Member, _ error: any Error, nowNanoseconds: UInt64) {
        guard isCurrent(flight) else { return }
        makeRoom(in: &sharedErrors)
        let until = nowNanoseconds + Self.nanoseconds(limits.sharedErrorSeconds)
        sharedErrors[flight.key] = SharedError(error: error, untilNanoseconds: until)
    }

    /// The key's answers cannot be shared, or can again.
    func noteShareable(_ isShareable: Bool, _ key: KeyHash, nowNanoseconds: UInt64) {
        if isShareable {
            hitForMissUntil[key] = nil
            sharedErrors[key] = nil
        } else {
            makeRoom(in: &hitForMissUntil)
            hitForMissUntil[key] = nowNanoseconds + Self.nanoseconds(limits.hitForMissSeconds)
        }
    }

    /// A background refresh ended.
    func noteRefresh(_ key: KeyHash, succeeded: Bool, nowNanoseconds: UInt64) {
        if succeeded {
            backOffs[key] = nil
            return
        }
        makeRoom(in: &backOffs)
        let failures = min((backOffs[key]?.failures ?? 0) + 1, 6)
        let seconds = limits.refreshBackOffSeconds * Double(1 << (failures - 1))
        backOffs[key] = BackOff(
            failures: failures,
            untilNanoseconds: nowNanoseconds + Self.nanoseconds(seconds)
        )
    }

    /// Whether one more request of `key` may leave its flight and ask for itself.
    func enterEscape(_ key: KeyHash) -> Bool {
        let count = escapes[key, default: 0]
        guard count < limits.escapesMax else { return false }
        escapes[key] = count + 1
        return true
    }

    /// An escaped request is answered.
    func leaveEscape(_ key: KeyHash) {
        guard let count = escapes[key] else { return }
        escapes[key] = count > 1 ? count - 1 : nil
    }

    // MARK: As a whole

    /// Runs `body` with nothing else of this shard's in between.
    func serially<Result: Sendable>(_ body: @Sendable () -> Result) -> Result { body() }

    /// How many keys have a flight under way.
    var count: Int { flights.count }

    /// Ends every flight; whoever waits gets `error`.
    func abortAll(_ error: any Error) {
        for flight in flights.values { flight.abort(error) }
        flights = [:]
    }

    private func makeRoom<Value>(in table: inout [KeyHash: Value]) {
        if table.count >= Self.sideTableMax { table.removeAll(keepingCapacity: true) }
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 {
        UInt64(max(0, min(seconds, 1e9)) * 1e9)
    }
}
