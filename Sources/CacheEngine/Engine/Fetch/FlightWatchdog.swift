import Synchronization

/// A flight that the watchdog watches.
protocol WatchedFlight: AnyObject, Sendable {
    /// Ends waits that take too long.
    func look()
    /// Ends the flight; the requests that wait for it get `error`.
    func abort(_ error: any Error)
}

/// Watches all flights under way, so that each wait has a limit.
///
///     idle ──add──▶ looking ──a look without flights──▶ idle
///
/// One task watches all of them: a task and a timer for each would cost a miss more than storing
/// its response.
final class FlightWatchdog: Sendable {
    /// The number of a flight, in the order of the starts.
    typealias Number = WaitingLine<Void>.Ticket

    private struct State {
        /// In the order of their start.
        var flights = WaitingLine<any WatchedFlight>()
        var isLooking = false
    }

    /// The time between two checks.
    let tickNanoseconds: UInt64
    private let clock: any CacheClock
    private let supervisor: Supervisor
    private let state = Mutex(State())

    init(clock: any CacheClock, supervisor: Supervisor, tickNanoseconds: UInt64) {
        self.clock = clock
        self.supervisor = supervisor
        self.tickNanoseconds = tickNanoseconds
    }

    /// Watches a flight that begins; returns the number with which it is removed.
    func add(_ flight: any WatchedFlight) -> Number {
        let (number, isIdle) = state.withLock { state in
            defer { state.isLooking = true }
            return (state.flights.enter(flight), !state.isLooking)
        }
        if isIdle { start() }
        return number
    }

    /// Stops watching a flight that has ended; does nothing the second time.
    func remove(_ number: Number) {
        // The flight is released outside the lock, with everything that it holds.
        _ = state.withLock { $0.flights.leave(number) }
    }

    /// Ends every flight, also one that no desk holds: for one request alone, or isolated.
    func abortAll(_ error: any Error) {
        if Mutant.leavesLonersWaiting.isOn { return }
        for flight in flightsInOrder { flight.abort(error) }
    }

    /// The flights in the order of their start.
    private var flightsInOrder: [any WatchedFlight] {
        state.withLock { $0.flights.everyone.map(\.element) }
    }

    /// Starts the task, which holds the watchdog only while it checks.
    private func start() {
        supervisor.start(.watching) { [weak self, clock, tickNanoseconds] in
            while (try? await clock.sleep(nanoseconds: tickNanoseconds)) != nil {
                guard let self else { return }
                for flight in self.flightsInOrder { flight.look() }
                if self.mayRest() { return }
            }
            self?.state.withLock { $0.isLooking = false }
        }
    }

    /// Whether the task may end because there is no flight; the next flight starts it again.
    private func mayRest() -> Bool {
        state.withLock { state in
            guard state.flights.isEmpty else { return false }
            state.isLooking = false
            return true
        }
    }
}
