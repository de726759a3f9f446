import Platform

extension Duration {
    /// Whole milliseconds, as `coarseMilliseconds` counts them.
    var milliseconds: Int64 { Int64(nanoseconds / 1_000_000) }
}

/// Milliseconds of the monotonic clock, to within a tick of the kernel.
func coarseMilliseconds() -> Int64 {
    var time = timespec()
    #if os(Linux)
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    #else
        clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}
