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
    private struct State {
        /// With the number of each, which gives their order.
        var flights: [ObjectIdentifier: (number: UInt64, flight: any WatchedFlight)] = [:]
        var lastNumber: UInt64 = 0
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

    /// Watches a flight that begins.
    func add(_ flight: any WatchedFlight) {
        let isIdle = state.withLock { state in
            assert(state.flights[ObjectIdentifier(flight)] == nil, "a flight is added once")
            state.lastNumber += 1
            state.flights[ObjectIdentifier(flight)] = (state.lastNumber, flight)
            defer { state.isLooking = true }
            return !state.isLooking
        }
        if isIdle { start() }
    }

    /// Stops watching a flight that has ended.
    func remove(_ flight: any WatchedFlight) {
        let removed = state.withLock { state in
            state.flights.removeValue(forKey: ObjectIdentifier(flight))
        }
        // Released outside the lock, with everything that it held.
        _ = removed
    }

    /// Ends every flight, also one that no desk holds: for one request alone, or isolated.
    func abortAll(_ error: any Error) {
        if Mutant.leavesLonersWaiting.isOn { return }
        for flight in flightsInOrder { flight.abort(error) }
    }

    /// The flights in the order of their start.
    private var flightsInOrder: [any WatchedFlight] {
        let flights = state.withLock { Array($0.flights.values) }
        return flights.sorted { $0.number < $1.number }.map(\.flight)
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
