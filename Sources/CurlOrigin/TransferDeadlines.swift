internal import CacheEngine
internal import Platform

/// The rules that decide whether an exchange has exceeded a time limit.
///
///     unsent ──sent──▶ uploading ──contentEnded──▶ awaiting ──headArrived──▶ arriving
///        └────sent, without content──────────────────▲
///
/// All times are nanoseconds of one monotonic clock.
package struct TransferDeadlines: Sendable {
    /// The limit that was exceeded.
    package enum Kind: Sendable { case unsent, upload, head, idle, total }

    /// The limits of a configuration in nanoseconds, for the many exchanges that it holds for.
    package struct Limits: Sendable {
        let connect: UInt64?
        let head: UInt64?
        let idle: UInt64?
        let total: UInt64?

        package init(_ limits: CurlConfiguration.Deadlines) {
            connect = limits.connect?.nanoseconds
            head = limits.head?.nanoseconds
            idle = limits.idle?.nanoseconds
            total = limits.total?.nanoseconds
        }
    }

    private enum Phase { case unsent, uploading, awaiting, arriving }

    /// The limit for the head, counted from the end of the whole request.
    private let headNanoseconds: UInt64?
    private let idleNanoseconds: UInt64?
    private let totalBy: UInt64
    private var phase = Phase.unsent
    /// The time at which the current phase ends.
    private var phaseBy: UInt64
    private var isReaderHolding = false

    package init(_ limits: Limits, head own: Duration?, now: UInt64) {
        let own = own?.nanoseconds
        let head = own.map { min($0, limits.head ?? .max) } ?? limits.head
        headNanoseconds = head
        idleNanoseconds = limits.idle
        totalBy = limits.total.map { now &+ $0 } ?? .max
        // A request's own limit counts from its start, including the wait for a connection.
        phaseBy =
            own.map { now &+ $0 }
            ?? head.map { now &+ $0 &+ (limits.connect ?? 0) }
            ?? .max
    }

    /// The earliest time at which `expired` may return a limit.
    package var next: UInt64 {
        min(totalBy, isReaderHolding && phase == .arriving ? .max : phaseBy)
    }

    /// The request is sent; called again if the connection turned out to be dead.
    package mutating func sent(hasContent: Bool, now: UInt64) {
        switch (phase, hasContent) {
        case (.unsent, true), (.uploading, true), (.awaiting, true):
            enter(.uploading, for: idleNanoseconds, now: now)
        // A repeated request gets only the time that the first one left.
        case (.unsent, false): enter(.awaiting, for: headNanoseconds, now: now)
        default: break
        }
    }

    /// Content was taken from its source, to be sent.
    package mutating func contentTaken(now: UInt64) {
        if phase == .uploading { enter(.uploading, for: idleNanoseconds, now: now) }
        progressed(now: now)
    }

    /// The whole content was taken to be sent; the origin's time to respond begins.
    package mutating func contentEnded(now: UInt64) {
        if phase == .uploading { enter(.awaiting, for: headNanoseconds, now: now) }
    }

    /// The origin has taken content that the system held: the limit for the content begins anew, or
    /// that for the head after it.
    package mutating func originTookContent(now: UInt64) {
        switch phase {
        case .uploading: enter(.uploading, for: idleNanoseconds, now: now)
        case .awaiting: enter(.awaiting, for: headNanoseconds, now: now)
        case .unsent, .arriving: break
        }
    }

    package mutating func headArrived(now: UInt64) {
        enter(.arriving, for: idleNanoseconds, now: now)
    }

    package mutating func progressed(now: UInt64) {
        if phase == .arriving { enter(.arriving, for: idleNanoseconds, now: now) }
    }

    /// The reader's window is full, so a silent origin is not at fault.
    package mutating func readerHolds() {
        isReaderHolding = !Mutant.blamesSlowReadersOnTheOrigin.isOn
    }

    package mutating func readerResumed(now: UInt64) {
        isReaderHolding = false
        progressed(now: now)
    }

    package func expired(at now: UInt64) -> Kind? {
        if now >= totalBy { return .total }
        guard now >= phaseBy else { return nil }
        switch phase {
        case .unsent: return .unsent
        case .uploading: return .upload
        case .awaiting: return .head
        case .arriving: return isReaderHolding ? nil : .idle
        }
    }

    private mutating func enter(_ phase: Phase, for nanoseconds: UInt64?, now: UInt64) {
        self.phase = phase
        phaseBy = nanoseconds.map { now &+ $0 } ?? .max
    }
}
