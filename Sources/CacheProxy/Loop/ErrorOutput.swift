import Platform
import Synchronization

/// The lines on standard error.
///
/// No event loop waits for their reader, which may be that of the access log. What it does not take
/// waits for a later line; lines beyond `waitingBytesMax` are dropped, and their number is written
/// as soon as there is room.
final class ErrorOutput: Sendable {
    static let waitingBytesMax = 64 << 10

    private struct State: Sendable {
        /// Lines that were not written; the beginning of the first one may be.
        var waiting: [UInt8] = []
        /// The number of dropped lines that no line has told yet.
        var dropped = 0

        mutating func writeWaiting(to descriptor: Int32) {
            let (count, code) = waiting.withUnsafeBytes { writeWithoutWaiting(descriptor, $0) }
            // A reader that has gone comes back for no line.
            let isKept = code == EAGAIN && !Mutant.forgetsReports.isOn
            if isKept { waiting.removeFirst(count) } else { waiting = [] }
        }
    }

    private let descriptor: Int32
    private let state = Mutex(State())

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    /// Writes a line, which ends with a line feed, after those that wait.
    func write(_ line: String) {
        state.withLock { state in
            state.writeWaiting(to: descriptor)
            let text = (state.dropped > 0 ? Self.loss(state.dropped) : "") + line
            guard state.waiting.count + text.utf8.count <= Self.waitingBytesMax else {
                state.dropped += 1
                return
            }
            state.dropped = 0
            state.waiting += text.utf8
            state.writeWaiting(to: descriptor)
        }
    }

    /// The line about dropped lines.
    static func loss(_ count: Int) -> String {
        "cache-proxy: \(count) lines on standard error were dropped: its reader took no more\n"
    }
}
