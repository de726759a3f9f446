import Benchmarks
import Platform

/// The program's output: results on standard output, everything else on standard error.
enum Terminal {
    static func say(_ text: String) { print(text, terminator: text.hasSuffix("\n") ? "" : "\n") }

    static func complain(_ text: String) { write(text.hasSuffix("\n") ? text : text + "\n") }

    private static func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                let count = Platform.write(2, start, rest.count)
                guard count > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    /// The progress of long work: on a terminal a line that is rewritten, elsewhere plain lines.
    struct ProgressLine {
        private let isTerminal: Bool
        private let write: (String) -> Void
        private var shown = ""

        init(
            isTerminal: Bool = isatty(2) == 1,
            write: @escaping (String) -> Void = Terminal.write
        ) {
            self.isTerminal = isTerminal
            self.write = write
        }

        /// Shows a step.
        ///
        /// Plain lines are written for each tenth of the work only.
        mutating func show(_ step: String, percent: Int? = nil) {
            let figure = percent.map { " \(isTerminal ? $0 : $0 / 10 * 10) %" } ?? ""
            let text = step + figure
            guard text != shown else { return }
            if isTerminal {
                let padding = String(repeating: " ", count: max(0, shown.count - text.count))
                write("\r\(text)\(padding)")
            } else {
                write(text + "\n")
            }
            shown = text
        }

        /// Shows how much of `total` bytes is done; without a total, the amount alone.
        ///
        /// Plain lines of an amount are written when it has doubled.
        mutating func show(_ step: String, bytes: Int, of total: Int?) {
            if let total, total > 0 {
                show(step, percent: min(100, bytes * 100 / total))
            } else {
                let highestBit = Int.bitWidth - 1 - max(1, bytes).leadingZeroBitCount
                let amount = isTerminal ? bytes : 1 << highestBit
                show("\(step), \(Unit.bytes.readable(Double(amount)))")
            }
        }

        mutating func clear() {
            guard isTerminal, !shown.isEmpty else { return }
            write("\r" + String(repeating: " ", count: shown.count) + "\r")
            shown = ""
        }
    }
}
