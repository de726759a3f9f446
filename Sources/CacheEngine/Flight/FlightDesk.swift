import Synchronization

/// Starts flights and knows which are under way, for the keys of one shard.
///
/// The actor owns the tables; what waits and what is answered lives in each `Flight`. Every table
/// is bounded: when one is full, requests fetch for themselves and nobody stalls.
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

    /// Entries of one side table; the oldest knowledge is thrown away first.
    private static var sideTableMax: Int { 4_096 }

    init(limits: FlightLimits, desks: Int) {
        self.limits = limits
        flightsMax = max(1, limits.flightsMax / max(1, desks))
    }

    /// What boarding came to.
    enum Boarding {
        case aboard(Member, Member.Place)
        case outcome(FlightOutcome<Answer>)
    }

    /// Joins the flight of `key`, or starts one where `lead` may.
    ///
    /// `isStored` tells whether the store has an answer by now: asked once, here, because a flight
    /// may have landed between the request's look-up and this call. `lead` starts the leading task;
    /// it is nil for a request that can follow but not lead.
    func board(
        _ key: KeyHash,
        _ request: Request,
        nowNanoseconds: UInt64,
        isStored: () -> Bool,
        lead: ((Member) -> Task<Void, Never>)?
    ) -> Boarding {
        if let flight = flights[key] {
            if !isOverdue(flight, nowNanoseconds) {
                return .aboard(flight, flight.join(request, nowNanoseconds: nowNanoseconds))
            }
            flights[key] = nil
            flight.land()
        }
        if let known = sharedErrors[key] {
            if known.untilNanoseconds > nowNanoseconds {
                return .outcome(.failed(known.error, isShared: true))
            }
            sharedErrors[key] = nil
        }
        if let until = hitForMissUntil[key] {
            if until > nowNanoseconds { return .outcome(.goAlone(.hitForMiss)) }
            hitForMissUntil[key] = nil
        }
        guard let lead else { return .outcome(.goAlone(.requested)) }
        guard flights.count < flightsMax else { return .outcome(.goAlone(.tableFull)) }
        if isStored() { return .outcome(.lookAgain) }
        let flight = register(key, isWanted: limits.abandoned == .finish, nowNanoseconds)
        let place = flight.join(request, nowNanoseconds: nowNanoseconds, isLeader: true)
        flight.attach(lead(flight))
        return .aboard(flight, place)
    }

    /// Starts a flight that nobody waits for, unless one is under way or the last one failed.
    func refresh(
        _ key: KeyHash,
        nowNanoseconds: UInt64,
        lead: (Member) -> Task<Void, Never>
    ) -> Bool {
        guard flights[key] == nil, flights.count < flightsMax else { return false }
        if let backOff = backOffs[key], backOff.untilNanoseconds > nowNanoseconds { return false }
        let flight = register(key, isWanted: true, nowNanoseconds)
        flight.attach(lead(flight))
        return true
    }

    /// Whether `flight` still holds its key: a late one must not overwrite what came after it.
    func isCurrent(_ flight: Member) -> Bool { flights[flight.key] === flight }

    /// The flight is over; the key is free.
    func end(_ flight: Member) {
        if flights[flight.key] === flight { flights[flight.key] = nil }
        flight.land()
    }

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

    /// Runs `body` with nothing else of this shard's in between.
    func serially<Result: Sendable>(_ body: @Sendable () -> Result) -> Result { body() }

    /// How many flights are under way.
    var count: Int { flights.count }

    /// Ends every flight.
    func cancelAll() {
        for flight in flights.values { flight.cancel() }
    }

    private func register(_ key: KeyHash, isWanted: Bool, _ nowNanoseconds: UInt64) -> Member {
        let machine = FlightStateMachine(
            isWanted: isWanted,
            waitersMax: limits.waitersMax,
            attemptsMax: limits.attemptsMax
        )
        let flight = Member(key: key, machine: machine, startedNanoseconds: nowNanoseconds)
        flights[key] = flight
        return flight
    }

    private func isOverdue(_ flight: Member, _ nowNanoseconds: UInt64) -> Bool {
        guard flight.isUnanswered else { return false }
        let limit = flight.startedNanoseconds + Self.nanoseconds(limits.ageSecondsMax)
        return nowNanoseconds >= limit
    }

    private func makeRoom<Value>(in table: inout [KeyHash: Value]) {
        if table.count >= Self.sideTableMax { table.removeAll(keepingCapacity: true) }
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 {
        UInt64(max(0, min(seconds, 1e9)) * 1e9)
    }
}
