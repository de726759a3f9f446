#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Closes a descriptor, from within types that have a `close` of their own.
func closeDescriptor(_ descriptor: Int32) { _ = close(descriptor) }

/// Milliseconds of the monotonic clock, as coarse as the kernel's tick.
func coarseMilliseconds() -> Int64 {
    var time = timespec()
    #if os(Linux)
        clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    #else
        clock_gettime(CLOCK_MONOTONIC, &time)
    #endif
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
}

/// Seconds since 1970, for `Date` and the log.
func wallSeconds() -> Int64 { Int64(time(nil)) }
