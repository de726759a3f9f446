#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The engine's view of time: one seam, so that a test can hold it.
public protocol CacheClock: Sendable {
    /// Seconds since 1970, never going backwards within one run.
    var nowSeconds: Int64 { get }
    /// Nanoseconds since an arbitrary moment, never going backwards.
    var monotonicNanoseconds: UInt64 { get }
    /// Returns when `nanoseconds` have passed, or throws when the task is cancelled.
    func sleep(nanoseconds: UInt64) async throws
}

/// The machine's clock: the wall clock read once, then carried on by the monotonic one.
///
/// A wall clock that somebody sets back (or forward) while the process runs neither revives nor
/// kills what is stored.
public struct SystemClock: CacheClock {
    private let offsetNanoseconds: Int64

    /// Reads the wall clock.
    public init() {
        let wall = Self.read(CLOCK_REALTIME)
        offsetNanoseconds = Int64(wall) - Int64(Self.read(CLOCK_MONOTONIC))
    }

    /// Seconds since 1970.
    public var nowSeconds: Int64 {
        (Int64(Self.read(Self.coarse)) + offsetNanoseconds) / 1_000_000_000
    }

    /// Nanoseconds of the monotonic clock.
    public var monotonicNanoseconds: UInt64 { Self.read(CLOCK_MONOTONIC) }

    /// Suspends the task.
    public func sleep(nanoseconds: UInt64) async throws {
        try await Task.sleep(nanoseconds: nanoseconds)
    }

    #if os(Linux)
        private static let coarse = CLOCK_MONOTONIC_COARSE
    #else
        private static let coarse = CLOCK_MONOTONIC
    #endif

    private static func read(_ clock: clockid_t) -> UInt64 {
        var time = timespec()
        clock_gettime(clock, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
