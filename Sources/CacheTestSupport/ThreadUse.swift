import Platform

/// The time of the calling thread, with and without a processor, at one moment.
///
/// The system gives the processor of a busy machine to other threads. A thread that does not wait
/// then loses time, and waits for no lock.
package struct ThreadUse: Sendable {
    package let clockNanoseconds: UInt64
    package let processorNanoseconds: UInt64
    /// The times that the thread gave up its processor to wait; `nil` if the system does not say.
    package let waits: Int?

    package init(clockNanoseconds: UInt64, processorNanoseconds: UInt64, waits: Int?) {
        self.clockNanoseconds = clockNanoseconds
        self.processorNanoseconds = processorNanoseconds
        self.waits = waits
    }

    package static var now: ThreadUse {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return ThreadUse(
            clockNanoseconds: monotonicNanoseconds(),
            processorNanoseconds: UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec),
            waits: waits()
        )
    }

    private static func waits() -> Int? {
        #if os(Linux)
            // This is RUSAGE_THREAD, which the module map leaves out.
            let thisThread: Int32 = 1
            var usage = rusage()
            return getrusage(thisThread, &usage) == 0 ? Int(usage.ru_nvcsw) : nil
        #else
            return nil
        #endif
    }

    /// The time that the thread had no processor and did not wait; zero if it has waited.
    package func lostNanoseconds(since start: ThreadUse) -> UInt64 {
        guard let waits, waits == start.waits else { return 0 }
        let passed = clockNanoseconds - start.clockNanoseconds
        let used = processorNanoseconds - start.processorNanoseconds
        return passed > used ? passed - used : 0
    }

    /// The time in which the thread computed or waited.
    package func ownNanoseconds(since start: ThreadUse) -> UInt64 {
        clockNanoseconds - start.clockNanoseconds - lostNanoseconds(since: start)
    }
}
