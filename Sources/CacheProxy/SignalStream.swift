import Platform

/// Signals as an asynchronous sequence; they no longer end the process.
struct SignalStream {
    let stream: AsyncStream<ReceivedSignal>

    /// Delivers `signals`; `ignored` ones have no effect.
    init(_ signals: [Int32], ignoring ignored: [Int32]) throws(SystemError) {
        var ends: (Int32, Int32) = (-1, -1)
        let result = withUnsafeMutablePointer(to: &ends) { pair in
            pair.withMemoryRebound(to: Int32.self, capacity: 2) { pipe($0) }
        }
        guard result == 0 else { throw SystemError(.openPipe) }
        let readEnd = ends.0
        signalPipe = ends.1
        let (stream, feed) = AsyncStream<ReceivedSignal>.makeStream()
        self.stream = stream
        try SystemThread.startDetached {
            var number: UInt8 = 0
            while true {
                let count = read(readEnd, &number, 1)
                if count == 1 {
                    let now = monotonicNanoseconds()
                    feed.yield(ReceivedSignal(number: Int32(number), atNanoseconds: now))
                }
                if count == 0 { return }
            }
        }
        for number in ignored { signal(number, SIG_IGN) }
        for number in signals {
            signal(number) { number in
                // A signal handler may call `write` and little else.
                var byte = UInt8(truncatingIfNeeded: number)
                _ = write(signalPipe, &byte, 1)
            }
        }
    }
}

/// The end of the pipe that the signal handler writes to.
///
/// `nonisolated(unsafe)`: written once, before any handler that reads it is installed.
nonisolated(unsafe) private var signalPipe: Int32 = -1
