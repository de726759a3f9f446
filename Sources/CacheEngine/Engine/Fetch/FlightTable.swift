import Platform

/// The flights under way, and what is known about keys without one, for the keys of one desk.
///
/// A value: it starts, wakes and cancels nothing. Each result names the work that its caller must
/// do after unlocking the desk. If `flights` is full, a request fetches on its own. Shared errors,
/// marks and pauses are hints: a full table of them is cleared.
///
/// Invariant: `flights` holds a flight under its own key, and under its variant's key, until the
/// flight has ended or another has replaced it.
struct FlightTable: Sendable {
    private struct BackOff {
        var failures: Int
        var untilNanoseconds: UInt64
    }

    private struct SharedError {
        var error: any Error
        var untilNanoseconds: UInt64
    }

    let limits: CollapsingOptions
    private let flightsMax: Int
    private var flights: [KeyHash: Flight] = [:]
    private var hitForMissUntil: [KeyHash: UInt64] = [:]
    /// The marks for requests with cookies: no other request heeds them.
    private var cookieMarksUntil: [KeyHash: UInt64] = [:]
    private var tooLargeUntil: [KeyHash: UInt64] = [:]
    private var sharedErrors: [KeyHash: SharedError] = [:]
    private var backOffs: [KeyHash: BackOff] = [:]
    /// The pauses for requests whose responses are for one client: no other request heeds them.
    private var personalBackOffs: [KeyHash: BackOff] = [:]
    private var escapes: [KeyHash: Int] = [:]

    /// The most entries of one side table; a full table is cleared.
    private static var sideTableMax: Int { 4_096 }

    init(limits: CollapsingOptions, desks: Int) {
        self.limits = limits
        flightsMax = max(1, limits.maximumFlights / max(1, desks))
    }

    /// The number of keys with a flight under way.
    var count: Int { flights.count }

    // MARK: Boarding

    /// Joins the flight of `key`, or registers one if the request may lead.
    mutating func board(
        _ key: KeyHash,
        _ request: FetchContext,
        nowNanoseconds: UInt64,
        _ checks: some BoardingChecks
    ) -> FlightBoarding {
        var terms = Flight.Terms(mayLead: checks.mayLead)
        // The flights of a marked key are for requests without cookies: it waits for none.
        let isMarked =
            checks.hasCookie && Self.isMarked(key, in: &cookieMarksUntil, nowNanoseconds)
        if !isMarked, let flight = current(key) {
            let isOutdated = checks.isOutdated(flight) && !Mutant.joinsOutdatedFlights.isOn
            let answer = flight.sharedAnswer
            if !isOutdated, checks.mayJoin(flight), !flight.founder.asksForPart,
                Self.isUsable(answer, of: flight, checks)
            {
                terms.newestHead = checks.newestHead
                let place = flight.join(
                    request,
                    terms,
                    isBehindRemovedTags: answer == nil && checks.isBehindRemovedTags(flight),
                    nowNanoseconds: nowNanoseconds
                )
                return .aboard(flight, place)
            }
            // A request that cannot lead leaves the flight to requests that can use it. The refresh of a
            // part answers none, and goes on without the key.
            guard checks.mayLead else { return .outcome(.goAlone(.mayNotShare)) }
            // An answer that does not suit this request may still be stored.
            if isOutdated { flight.retire() }
            remove(flight)
        }
        if let known = knownOutcome(key, nowNanoseconds) { return .outcome(known) }
        if isMarked { return .outcome(.goAlone(.hitForMiss)) }
        guard checks.mayLead else { return .outcome(.goAlone(.mayNotShare)) }
        guard flights.count < flightsMax else { return .outcome(.goAlone(.tableFull)) }
        if checks.hasNews() { return .outcome(.lookAgain) }
        let isWanted = limits.abandoned == .finish
        let flight = register(key, request, isWanted: isWanted, nowNanoseconds: nowNanoseconds)
        let place = flight.join(request, as: .asker, terms, nowNanoseconds: nowNanoseconds)
        return .leading(flight, place)
    }

    /// Registers a flight without waiters, unless one is under way or the last one failed recently.
    mutating func refresh(
        _ key: KeyHash,
        _ request: FetchContext,
        nowNanoseconds: UInt64,
        _ checks: some BoardingChecks
    ) -> Flight? {
        // A response that no request may join any more is stored all the same.
        if let flight = flights[key], !flight.isOver || isStored(by: flight) {
            let isOutdated = checks.isOutdated(flight)
            // A refresh for one client refreshes for nobody else.
            guard
                isOutdated || checks.refreshesRemovedTag(flight)
                    || !checks.isPersonal && !checks.mayJoin(flight)
            else { return nil }
            if isOutdated { flight.retire() }
        }
        let isPaused =
            Self.isPaused(key, backOffs, nowNanoseconds)
            || checks.isPersonal && Self.isPaused(key, personalBackOffs, nowNanoseconds)
            || checks.hasCookie && Self.isMarked(key, in: &cookieMarksUntil, nowNanoseconds)
        if isPaused { return nil }
        guard flights.count < flightsMax, !checks.hasNews(), checks.mayLead else { return nil }
        return register(key, request, isWanted: true, nowNanoseconds: nowNanoseconds)
    }

    /// Whether the flight, which no request may join any more, is storing its response.
    private func isStored(by flight: Flight) -> Bool {
        flight.isBeingStored && !Mutant.refreshesBesideABody.isOn
    }

    private static func isPaused(
        _ key: KeyHash,
        _ backOffs: [KeyHash: BackOff],
        _ nowNanoseconds: UInt64
    ) -> Bool {
        backOffs[key].map { $0.untilNanoseconds > nowNanoseconds } ?? false
    }

    /// Removes the flight of `key` if it has waited for a head for longer than the maximum age, if
    /// there is one; its caller gives it up.
    ///
    /// Otherwise the watchdog ends an attempt with the time of the request that was sent.
    mutating func takeOverdue(_ key: KeyHash, nowNanoseconds: UInt64) -> Flight? {
        let unset = Mutant.endsFlightsInTheirTime.isOn ? Duration.seconds(60) : nil
        guard let age = limits.maximumAge ?? unset, let flight = flights[key],
            nowNanoseconds >= flight.startedNanoseconds + age.nanoseconds, flight.isUnanswered
        else { return nil }
        flight.retire()
        remove(flight)
        return flight
    }

    /// The flight under way that can still be joined.
    private mutating func current(_ key: KeyHash) -> Flight? {
        guard let flight = flights[key] else { return nil }
        if !flight.isOver { return flight }
        // Until its response is stored, no refresh is needed.
        if !isStored(by: flight) { remove(flight) }
        return nil
    }

    /// Whether the flight has no answer yet, or one that suits the request.
    private static func isUsable(
        _ answer: FlightAnswer?,
        of flight: Flight,
        _ checks: some BoardingChecks
    ) -> Bool {
        guard let answer else { return true }
        return checks.suits(answer, of: flight) || Mutant.joinsUnsuitableAnswers.isOn
    }

    /// The recent outcome of a flight of this key.
    private mutating func knownOutcome(
        _ key: KeyHash,
        _ nowNanoseconds: UInt64
    ) -> FlightOutcome? {
        if let known = sharedErrors[key] {
            if known.untilNanoseconds > nowNanoseconds {
                return .failed(known.error, isShared: true)
            }
            sharedErrors[key] = nil
        }
        let isMarked = Self.isMarked(key, in: &hitForMissUntil, nowNanoseconds)
        return isMarked ? .goAlone(.hitForMiss) : nil
    }

    /// Whether the key is marked; a mark whose time has passed is forgotten.
    private static func isMarked(
        _ key: KeyHash,
        in marksUntil: inout [KeyHash: UInt64],
        _ nowNanoseconds: UInt64
    ) -> Bool {
        guard !marksUntil.isEmpty, let until = marksUntil[key] else { return false }
        if until > nowNanoseconds { return true }
        marksUntil[key] = nil
        return false
    }

    private mutating func register(
        _ key: KeyHash,
        _ founder: FetchContext,
        isWanted: Bool,
        nowNanoseconds: UInt64
    ) -> Flight {
        let flight = Flight(
            key: key,
            founder: founder,
            isWanted: isWanted,
            waitersMax: limits.maximumWaiters,
            attemptsMax: limits.maximumAttempts,
            startedNanoseconds: nowNanoseconds
        )
        if let earlier = flights[key] { remove(earlier) }
        assert(flights.count < flightsMax)
        flights[key] = flight
        return flight
    }

    // MARK: Leaving

    /// Whether `flight` still holds its key.
    func isCurrent(_ flight: Flight) -> Bool { flights[flight.key] === flight }

    /// Releases the keys of a flight.
    mutating func remove(_ flight: Flight) {
        release(flight.key, of: flight)
        if let key = flight.variantKey { release(key, of: flight) }
        assert(!flights.values.contains { $0 === flight }, "no other key is left")
    }

    /// Releases one key, if the flight holds it.
    private mutating func release(_ key: KeyHash, of flight: Flight) {
        if let place = flights.index(forKey: key), flights[place].value === flight {
            flights.remove(at: place)
        }
    }

    /// Registers the flight of `key` that holds `permit` also under `variantKey`.
    mutating func enter(_ variantKey: KeyHash, of key: KeyHash, _ permit: StorePermit?) {
        guard let permit, let flight = flights[key], flight.permit === permit,
            flights[variantKey] == nil
        else { return }
        // An attempt that was given up may have registered another key.
        if let earlier = flight.variantKey { release(earlier, of: flight) }
        flight.variantKey = variantKey
        flights[variantKey] = flight
        assert(isCurrent(flight), "it is found under its own key, too")
    }

    // MARK: Facts about a key

    mutating func noteUnreachable(
        by flight: Flight,
        _ error: any Error,
        nowNanoseconds: UInt64
    ) {
        guard isCurrent(flight) else { return }
        Self.makeRoom(in: &sharedErrors)
        let until = nowNanoseconds + limits.sharedErrorTime.nanoseconds
        sharedErrors[flight.key] = SharedError(error: error, untilNanoseconds: until)
    }

    mutating func noteShareable(_ key: KeyHash, isForAll: Bool) {
        if isForAll, !cookieMarksUntil.isEmpty { cookieMarksUntil[key] = nil }
        if !hitForMissUntil.isEmpty { hitForMissUntil[key] = nil }
        if !tooLargeUntil.isEmpty { tooLargeUntil[key] = nil }
        if !sharedErrors.isEmpty { sharedErrors[key] = nil }
        if !backOffs.isEmpty { backOffs[key] = nil }
    }

    mutating func noteUnshareable(_ key: KeyHash, nowNanoseconds: UInt64) {
        Self.makeRoom(in: &hitForMissUntil)
        hitForMissUntil[key] = nowNanoseconds + limits.hitForMissTime.nanoseconds
    }

    /// Returns whether the key was not marked.
    mutating func noteUnshareableWithCookie(_ key: KeyHash, nowNanoseconds: UInt64) -> Bool {
        if Self.isMarked(key, in: &cookieMarksUntil, nowNanoseconds) { return false }
        Self.makeRoom(in: &cookieMarksUntil)
        cookieMarksUntil[key] = nowNanoseconds + limits.hitForMissTime.nanoseconds
        return true
    }

    mutating func noteTooLarge(_ key: KeyHash, nowNanoseconds: UInt64) {
        if Mutant.marksNoLargeResponses.isOn { return }
        Self.makeRoom(in: &tooLargeUntil)
        tooLargeUntil[key] = nowNanoseconds + limits.hitForMissTime.nanoseconds
    }

    mutating func isTooLarge(_ key: KeyHash, nowNanoseconds: UInt64) -> Bool {
        Self.isMarked(key, in: &tooLargeUntil, nowNanoseconds)
    }

    mutating func noteRefresh(_ key: KeyHash, _ end: RefreshEnd, nowNanoseconds: UInt64) {
        if Mutant.refreshesWithoutPause.isOn { return }
        switch end {
        case .succeeded:
            backOffs[key] = nil
            personalBackOffs[key] = nil
        case .failed: pause(key, in: &backOffs, failures: 1, nowNanoseconds)
        case .failedForOne: pause(key, in: &personalBackOffs, failures: 1, nowNanoseconds)
        case .unreachable:
            let failures = min((backOffs[key]?.failures ?? 0) + 1, 6)
            pause(key, in: &backOffs, failures: failures, nowNanoseconds)
        }
    }

    private func pause(
        _ key: KeyHash,
        in backOffs: inout [KeyHash: BackOff],
        failures: Int,
        _ nowNanoseconds: UInt64
    ) {
        Self.makeRoom(in: &backOffs)
        let seconds = limits.refreshBackOff.seconds * Double(1 << (failures - 1))
        backOffs[key] = BackOff(
            failures: failures,
            untilNanoseconds: nowNanoseconds + UInt64(nanosecondsIn: seconds)
        )
    }

    mutating func enterEscape(_ key: KeyHash) -> Bool {
        let count = escapes[key, default: 0]
        guard count < limits.maximumEscapes || Mutant.escapesFreely.isOn else { return false }
        escapes[key] = count + 1
        return true
    }

    mutating func leaveEscape(_ key: KeyHash) {
        assert(escapes[key] != nil, "only an escape that began ends")
        guard let count = escapes[key] else { return }
        escapes[key] = count > 1 ? count - 1 : nil
    }

    /// Removes the flight of `key` if it has waited for a head since before `nanoseconds`.
    mutating func takeUnanswered(_ key: KeyHash, startedBefore nanoseconds: UInt64) -> Flight? {
        guard let flight = flights[key], flight.isUnanswered,
            flight.startedNanoseconds < nanoseconds
        else { return nil }
        remove(flight)
        return flight
    }

    /// Removes all flights, and returns them in the order of their start.
    mutating func takeAll() -> [Flight] {
        defer { flights = [:] }
        // A flight that is also found under a variant's key counts once.
        return flights.filter { $0.key == $0.value.key }.sorted { left, right in
            (left.value.startedNanoseconds, left.key.placement, left.key.identity)
                < (right.value.startedNanoseconds, right.key.placement, right.key.identity)
        }
        .map(\.value)
    }

    private static func makeRoom<Value>(in table: inout [KeyHash: Value]) {
        if table.count >= sideTableMax { table.removeAll(keepingCapacity: true) }
        assert(table.count < sideTableMax)
    }
}

/// The result of boarding.
enum FlightBoarding {
    /// The request joined a flight under way.
    case aboard(Flight, Flight.Place)
    /// The request leads a new flight: the caller starts the task that fetches.
    case leading(Flight, Flight.Place)
    case outcome(FlightOutcome)
}

/// The end of a background refresh.
enum RefreshEnd: Hashable, Sendable {
    case succeeded
    /// The origin failed, possibly because of this request: the refresh is soon tried again.
    case failed
    /// The response is for one client only, or that client's request may have caused the failure.
    case failedForOne
    /// No request caused the failure: the longer it lasts, the longer the pauses.
    case unreachable
}
