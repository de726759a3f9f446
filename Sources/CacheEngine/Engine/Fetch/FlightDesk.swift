import Synchronization

/// Registers flights, and records which are under way, for its share of the keys.
///
/// The desk guards the tables; each `Flight` owns its waiters and its answer. If the table of
/// flights is full, a request fetches on its own and does not stall.
///
/// Nothing is started, resumed or cancelled while the table is locked: a flight that must be ended
/// is taken from the table, and ended after the lock is released.
final class FlightDesk: Sendable {
    private let table: Mutex<FlightTable>

    init(limits: CollapsingOptions, desks: Int) {
        table = Mutex(FlightTable(limits: limits, desks: desks))
    }

    // MARK: Boarding

    /// Joins the flight of `key`, or registers one if the request may lead.
    ///
    /// The caller starts the task of a flight that it leads, and attaches it.
    func board(
        _ key: KeyHash,
        _ request: FetchContext,
        nowNanoseconds: UInt64,
        _ checks: some BoardingChecks
    ) -> FlightBoarding {
        let (overdue, boarding) = table.withLock { table in
            (
                table.takeOverdue(key, nowNanoseconds: nowNanoseconds),
                table.board(key, request, nowNanoseconds: nowNanoseconds, checks)
            )
        }
        overdue?.giveUp()
        return boarding
    }

    /// Registers a flight without waiters, unless one is under way or the last one failed recently.
    ///
    /// The caller starts its task, and attaches it.
    func refresh(
        _ key: KeyHash,
        _ request: FetchContext,
        nowNanoseconds: UInt64,
        _ checks: some BoardingChecks
    ) -> Flight? {
        let (overdue, flight) = table.withLock { table in
            (
                table.takeOverdue(key, nowNanoseconds: nowNanoseconds),
                table.refresh(key, request, nowNanoseconds: nowNanoseconds, checks)
            )
        }
        overdue?.giveUp()
        return flight
    }

    // MARK: Leaving

    /// Releases the keys of a flight whose response is stored.
    ///
    /// Later requests find the response in the store; the waiters of the flight are still told.
    func withdraw(_ flight: Flight) { table.withLock { $0.remove(flight) } }

    /// Runs `body` without other work of this desk in between, because the response varies.
    ///
    /// The flight that holds `permit` is also registered under the key that `body` finds. `body`
    /// must be short and wake nothing: the desk is locked.
    func settleVariant<Result: Sendable>(
        of key: KeyHash,
        _ permit: StorePermit?,
        _ body: () -> (Result, KeyHash)
    ) -> Result {
        table.withLock { table in
            let (result, variantKey) = body()
            table.enter(variantKey, of: key, permit)
            return result
        }
    }

    // MARK: Facts about a key

    /// Records that no attempt of the flight reached the origin.
    ///
    /// For a short time its error answers later requests. Other errors are not recorded, because
    /// one request may have provoked them.
    func noteUnreachable(by flight: Flight, _ error: any Error, nowNanoseconds: UInt64) {
        table.withLock { $0.noteUnreachable(by: flight, error, nowNanoseconds: nowNanoseconds) }
    }

    /// Records that the responses of the key can be shared: also with requests with cookies, if
    /// later requests get this one (`isForAll`).
    func noteShareable(_ key: KeyHash, isForAll: Bool) {
        table.withLock { $0.noteShareable(key, isForAll: isForAll) }
    }

    /// Records that the responses of the key cannot be shared.
    func noteUnshareable(_ key: KeyHash, nowNanoseconds: UInt64) {
        table.withLock { $0.noteUnshareable(key, nowNanoseconds: nowNanoseconds) }
    }

    /// Records that requests with cookies share no responses of the key; returns whether that was
    /// unknown.
    func noteUnshareableWithCookie(_ key: KeyHash, nowNanoseconds: UInt64) -> Bool {
        table.withLock { $0.noteUnshareableWithCookie(key, nowNanoseconds: nowNanoseconds) }
    }

    /// Records that the response of the key is too large to be stored.
    ///
    /// Its requests still share flights; for a while those with conditions are sent as they came.
    func noteTooLarge(_ key: KeyHash, nowNanoseconds: UInt64) {
        table.withLock { $0.noteTooLarge(key, nowNanoseconds: nowNanoseconds) }
    }

    /// Whether a recent response of the key was too large to be stored.
    func isTooLarge(_ key: KeyHash, nowNanoseconds: UInt64) -> Bool {
        table.withLock { $0.isTooLarge(key, nowNanoseconds: nowNanoseconds) }
    }

    /// Records how a background refresh ended.
    func noteRefresh(_ key: KeyHash, _ end: RefreshEnd, nowNanoseconds: UInt64) {
        table.withLock { $0.noteRefresh(key, end, nowNanoseconds: nowNanoseconds) }
    }

    /// Returns whether one more request of `key` may leave its flight and fetch on its own.
    func enterEscape(_ key: KeyHash) -> Bool { table.withLock { $0.enterEscape(key) } }

    /// Records that an escaped request has ended.
    func leaveEscape(_ key: KeyHash) { table.withLock { $0.leaveEscape(key) } }

    /// Isolates the flight of `key` if it hangs while the origin answers.
    ///
    /// The origin answered a request that was sent at `nanoseconds`. A flight that has waited for
    /// its head since before then hangs because of its own request, and other requests need not
    /// share that.
    func isolateFlight(of key: KeyHash, startedBefore nanoseconds: UInt64) {
        table.withLock { $0.takeUnanswered(key, startedBefore: nanoseconds) }?.isolate()
    }

    // MARK: All flights

    /// The number of keys with a flight under way.
    var count: Int { table.withLock { $0.count } }

    /// Ends every flight; its waiters get `error`.
    func abortAll(_ error: any Error) {
        for flight in table.withLock({ $0.takeAll() }) { flight.abort(error) }
    }
}

/// Facts that only the caller of `board` knows, read while the desk is locked: they are short and
/// wake nothing.
protocol BoardingChecks {
    /// Whether the request may be sent on behalf of others that wait.
    var mayLead: Bool { get }
    /// The place of the newest head of the origin's.
    var newestHead: UInt64 { get }
    /// Whether the request's own response would be for one client only.
    var isPersonal: Bool { get }
    /// Whether the request has cookies that may keep its response from other clients.
    var hasCookie: Bool { get }
    /// Whether the response of the flight may be for more than one client.
    func mayJoin(_ flight: Flight) -> Bool
    /// Whether the flight under way is too old for this request.
    ///
    /// Either its key or everything was removed after it began, or its response came before the
    /// request and must be newer.
    func isOutdated(_ flight: Flight) -> Bool
    /// Whether any tag was removed since the flight began.
    func isBehindRemovedTags(_ flight: Flight) -> Bool
    /// Whether the response that is to be refreshed carries a tag that was removed since the flight
    /// began: another one with that tag would not be stored.
    func refreshesRemovedTag(_ flight: Flight) -> Bool
    /// Whether the request may read the flight's answer, whose head came before it.
    func suits(_ answer: FlightAnswer, of flight: Flight) -> Bool
    /// Whether the store has changed since the request's look-up: a flight may have ended.
    func hasNews() -> Bool
}
