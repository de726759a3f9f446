/// When an exchange has taken too long: numbers in, a verdict out.
///
/// All moments are nanoseconds of one monotonic clock.
struct TransferDeadlines {
    /// Which limit was passed.
    enum Kind { case head, idle, total }

    /// Limits beyond any clock count as none; this keeps their sums in range.
    private static let secondsMax = 1e9

    private let headNanoseconds: UInt64?
    private var headBy: UInt64
    private let totalBy: UInt64
    private let idleNanoseconds: UInt64?
    private var idleBy = UInt64.max
    private var hasHead = false
    private var isReaderHolding = false

    init(
        _ limits: CurlConfiguration.Deadlines,
        headSeconds: Double?,
        now: UInt64
    ) {
        headNanoseconds = (headSeconds ?? limits.headSeconds).map(Self.nanoseconds)
        headBy = headNanoseconds.map { now &+ $0 } ?? .max
        totalBy = Self.moment(limits.totalSeconds, after: now)
        idleNanoseconds = limits.idleSeconds.map(Self.nanoseconds)
    }

    /// The earliest moment at which `expired` can say anything but nil.
    var next: UInt64 { min(totalBy, hasHead ? (isReaderHolding ? .max : idleBy) : headBy) }

    /// The origin takes content: its time to answer begins when it has all of it.
    mutating func contentTaken(now: UInt64) {
        if let headNanoseconds { headBy = now &+ headNanoseconds }
    }

    mutating func headArrived(now: UInt64) {
        hasHead = true
        progressed(now: now)
    }

    mutating func progressed(now: UInt64) {
        if hasHead, let idleNanoseconds { idleBy = now &+ idleNanoseconds }
    }

    /// The reader has enough for now: the origin is not to blame for silence.
    mutating func readerHolds() { isReaderHolding = true }

    mutating func readerResumed(now: UInt64) {
        isReaderHolding = false
        progressed(now: now)
    }

    func expired(at now: UInt64) -> Kind? {
        if now >= totalBy { return .total }
        if !hasHead { return now >= headBy ? .head : nil }
        return !isReaderHolding && now >= idleBy ? .idle : nil
    }

    private static func nanoseconds(_ seconds: Double) -> UInt64 {
        UInt64(max(0, min(seconds.isNaN ? 0 : seconds, secondsMax)) * 1e9)
    }

    private static func moment(_ seconds: Double?, after now: UInt64) -> UInt64 {
        seconds.map { now &+ nanoseconds($0) } ?? .max
    }
}
