import CacheEngine
import RESP
import Synchronization

/// The time of the log's server, which all machines of a fleet share.
///
/// Their own clocks may differ by minutes, and the age of a response must not. The offset is the
/// median of the last samples, as single ones are late. A step of the server's clock, or another
/// server with another clock, begins anew.
final class FleetTime: Sendable {
    private static let samplesMax = 5
    /// More than the delay of any reply, and as much as a machine's report may be old.
    private static let stepMilliseconds = PlaceReport.lifeMilliseconds

    private struct State {
        var offsets: [Int64] = []
        var next = 0
        /// The median of the offsets; `nil` before the first sample.
        var median: Int64?

        mutating func add(_ offset: Int64) {
            if let median, !(median - stepMilliseconds...median + stepMilliseconds).contains(offset)
            {
                (offsets, next) = ([], 0)
            }
            if offsets.count < samplesMax {
                offsets.append(offset)
            } else {
                offsets[next] = offset
                next = (next + 1) % samplesMax
            }
            median = offsets.sorted()[offsets.count / 2]
        }
    }

    private let clock: any CacheClock
    private let state = Mutex(State())

    init(_ clock: any CacheClock = SystemClock()) { self.clock = clock }

    /// The server's time, as a reply that has just arrived gives it.
    func note(serverMilliseconds: Int64, ownMilliseconds own: Int64? = nil) {
        let offset = serverMilliseconds - (own ?? ownMilliseconds)
        state.withLock { $0.add(offset) }
    }

    /// Takes the reply to TIME.
    func note(_ reply: RESPValue) {
        if let time = Self.milliseconds(reply) { note(serverMilliseconds: time) }
    }

    /// The milliseconds of a reply to TIME, which has seconds and microseconds.
    static func milliseconds(_ reply: RESPValue) -> Int64? {
        let numbers = (reply.elements ?? []).compactMap { $0.text.flatMap { Int64($0) } }
        // A time before the year 36,812.
        guard numbers.count == 2, (0..<1 << 40).contains(numbers[0]),
            (0..<1_000_000).contains(numbers[1])
        else { return nil }
        return numbers[0] * 1_000 + numbers[1] / 1_000
    }

    /// The fleet's time in milliseconds since 1970; `nil` before the first sample.
    func now(ownMilliseconds own: Int64? = nil) -> Int64? {
        let now = own ?? ownMilliseconds
        return state.withLock { $0.median }.map { now + $0 }
    }

    /// The time of this machine since it was started: no setting of a clock changes it.
    private var ownMilliseconds: Int64 { Int64(clock.monotonicNanoseconds / 1_000_000) }
}
