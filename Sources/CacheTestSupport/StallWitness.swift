import Platform
import Synchronization

/// Notes when the tasks of this process, which other tests share, got no processor.
package final class StallWitness: Sendable {
    private static let stepMilliseconds: Int32 = 1
    /// A step that takes no longer than this is no stall.
    private static let usualNanoseconds: UInt64 = 10_000_000

    private let stalls = Mutex<[Range<UInt64>]>([])

    package init() {}

    /// Watches until the task is cancelled.
    package func watch() async {
        while !Task.isCancelled {
            let start = monotonicNanoseconds()
            await pause(milliseconds: Self.stepMilliseconds)
            let usual = start + Self.usualNanoseconds
            let end = monotonicNanoseconds()
            if end > usual { stalls.withLock { $0.append(usual..<end) } }
        }
    }

    /// The length of a time without the stalls in it.
    package func busyNanoseconds(_ time: Range<UInt64>) -> UInt64 {
        let stalled = stalls.withLock { stalls in
            stalls.reduce(0) { $0 + UInt64($1.clamped(to: time).count) }
        }
        return UInt64(time.count) - stalled
    }
}
