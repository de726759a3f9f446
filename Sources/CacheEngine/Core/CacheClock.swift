import Platform
import Synchronization

/// The time source of the engine, which a test can replace.
public protocol CacheClock: Sendable {
    /// Seconds since 1970; never decreases within one run.
    var nowSeconds: Int64 { get }
    /// Nanoseconds since an arbitrary moment; never decreases.
    var monotonicNanoseconds: UInt64 { get }
    /// Returns when `nanoseconds` have passed, or throws if the task is cancelled.
    func sleep(nanoseconds: UInt64) async throws
}

/// The system's clock.
///
/// It reads the wall clock once and then adds the time of the monotonic clock and the time that the
/// machine was suspended. A change of the wall clock while the process runs therefore does not
/// affect stored entries. Entries age while the machine is suspended.
public struct SystemClock: CacheClock {
    private let offsetNanoseconds: Int64

    /// Reads the wall clock.
    public init() {
        let wall = Self.read(CLOCK_REALTIME)
        offsetNanoseconds = Int64(wall) - Int64(Self.read(Self.withSleep))
    }

    /// Seconds since 1970.
    public var nowSeconds: Int64 {
        let awake = Self.read(Self.coarse)
        let slept = Self.sleepWatch.nanoseconds(at: awake) {
            // In this order, so that the time between the readings counts as sleep and the
            // difference cannot be negative.
            let awake = Self.read(CLOCK_MONOTONIC)
            return max(awake, Self.read(Self.withSleep)) - awake
        }
        return (Int64(awake + slept) + offsetNanoseconds) / 1_000_000_000
    }

    /// Nanoseconds of the monotonic clock.
    public var monotonicNanoseconds: UInt64 { Self.read(CLOCK_MONOTONIC) }

    /// Suspends the task.
    public func sleep(nanoseconds: UInt64) async throws {
        try await Task.sleep(nanoseconds: nanoseconds)
    }

    private static let sleepWatch = SleepWatch()

    #if os(Linux)
        private static let coarse = CLOCK_MONOTONIC_COARSE
        private static let withSleep = CLOCK_BOOTTIME
    #else
        private static let coarse = CLOCK_MONOTONIC
        private static let withSleep = CLOCK_MONOTONIC
    #endif

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}

/// How long the machine has been suspended.
///
/// The coarse clock excludes suspension, and a clock that includes it costs three times as much.
/// That clock is therefore read once per second.
final class SleepWatch: Sendable {
    static let intervalNanoseconds: UInt64 = 1_000_000_000
    /// A smaller difference is the time between two readings, not a suspension.
    private static let leastNanoseconds: UInt64 = 1_000_000

    private let slept = Atomic<UInt64>(0)
    private let nextLook = Atomic<UInt64>(0)

    /// The suspended time when the clock reads `awake`.
    ///
    /// `look` measures the suspended time; it is called at most once per interval.
    @inline(__always)
    func nanoseconds(at awake: UInt64, _ look: () -> UInt64) -> UInt64 {
        // Plain loads of a cache line that is written once per second.
        if awake >= nextLook.load(ordering: .acquiring) { update(awake, look()) }
        return slept.load(ordering: .relaxed)
    }

    @inline(never)
    private func update(_ awake: UInt64, _ now: UInt64) {
        // Stored after `slept`, so that a thread that skips the measurement reads its result.
        defer { nextLook.store(awake + Self.intervalNanoseconds, ordering: .releasing) }
        let known = slept.load(ordering: .relaxed)
        guard now >= known + Self.leastNanoseconds else { return }
        // If two threads measure at once, the first result counts: the time never decreases.
        _ = slept.compareExchange(expected: known, desired: now, ordering: .relaxed)
    }
}
