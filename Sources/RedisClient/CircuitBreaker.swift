import Platform

/// Decides whether a server is asked, after failures.
///
///     closed ──failures in a row, or hung──▶ open ──time──▶ probing ──reply──▶ closed
///                                             ▲                │
///                                             └───no reply─────┘ (twice the time)
///
/// A pure value: the caller gives the time. Each opening lasts twice as long as the one before, until
/// the server replies to a command after a probe.
package struct CircuitBreaker: Hashable, Sendable {
    package struct Limits: Hashable, Sendable {
        /// The failures in a row that open the breaker.
        package var failureCountMax: Int
        /// The first time that it stays open.
        package var openLimitMin: Duration
        /// The longest time that it stays open.
        package var openLimitMax: Duration

        package init(
            failureCountMax: Int = 5,
            openLimitMin: Duration = .milliseconds(250),
            openLimitMax: Duration = .seconds(10)
        ) {
            self.failureCountMax = failureCountMax
            self.openLimitMin = openLimitMin
            self.openLimitMax = openLimitMax
        }
    }

    package enum State: Hashable, Sendable {
        /// Commands are sent.
        case closed
        /// Nothing is sent until this moment, in nanoseconds.
        case open(until: UInt64)
        /// One PING is under way, and nothing else is sent.
        case probing
    }

    package let limits: Limits
    package private(set) var state = State.closed
    private var failureCount = 0
    /// The time that the next opening lasts.
    private var openNanoseconds: UInt64

    package init(_ limits: Limits = Limits()) {
        self.limits = limits
        openNanoseconds = limits.openLimitMin.nanoseconds
    }

    package var isClosed: Bool { state == .closed }

    /// The moment to call `timePassed`; `UInt64.max` while no time limit runs.
    package var nextMoment: UInt64 {
        if case .open(let moment) = state { moment } else { .max }
    }

    /// A command has its reply.
    package mutating func succeeded() {
        guard isClosed else { return }
        failureCount = 0
        openNanoseconds = limits.openLimitMin.nanoseconds
    }

    /// A connection failed, was cut with missing replies, or was closed because a reply was late.
    package mutating func failed(now: UInt64) {
        switch state {
        case .closed:
            failureCount += 1
            if failureCount >= limits.failureCountMax, !Mutant.neverOpens.isOn { open(now) }
        case .probing: open(now)
        case .open: break
        }
    }

    /// The oldest reply is missing for too long.
    package mutating func hung(now: UInt64) {
        guard isClosed else { return failed(now: now) }
        open(now)
    }

    /// Returns `true` if the time has come to send a PING.
    package mutating func timePassed(now: UInt64) -> Bool {
        guard case .open(let moment) = state, now >= moment else { return false }
        state = .probing
        return true
    }

    /// The server answered the PING.
    package mutating func probeSucceeded() {
        guard state == .probing else { return }
        state = .closed
        // One more failure opens it again.
        failureCount = limits.failureCountMax - 1
    }

    private mutating func open(_ now: UInt64) {
        state = .open(until: now &+ openNanoseconds)
        openNanoseconds = min(openNanoseconds * 2, limits.openLimitMax.nanoseconds)
    }
}
