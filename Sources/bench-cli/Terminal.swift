import Benchmarks

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// Where the tool speaks: results to standard output, everything else to standard error.
enum Terminal {
    static func say(_ text: String) { print(text, terminator: text.hasSuffix("\n") ? "" : "\n") }

    static func complain(_ text: String) { write(text.hasSuffix("\n") ? text : text + "\n") }

    private static func write(_ text: String) {
        var text = text
        text.withUTF8 { bytes in
            var rest = UnsafeRawBufferPointer(bytes)
            while let start = rest.baseAddress, !rest.isEmpty {
                #if canImport(Glibc)
                    let count = Glibc.write(2, start, rest.count)
                #else
                    let count = Darwin.write(2, start, rest.count)
                #endif
                guard count > 0 else { return }
                rest = UnsafeRawBufferPointer(rebasing: rest[count...])
            }
        }
    }

    /// One line that is rewritten as work goes on; nothing at all where nobody looks.
    struct ProgressLine {
        private let isShown: Bool
        private var shown = 0

        init() { isShown = isatty(2) == 1 }

        mutating func show(_ text: String) {
            guard isShown else { return }
            let padding = String(repeating: " ", count: max(0, shown - text.count))
            Terminal.write("\r\(text)\(padding)")
            shown = text.count
        }

        mutating func clear() {
            guard isShown, shown > 0 else { return }
            Terminal.write("\r" + String(repeating: " ", count: shown) + "\r")
            shown = 0
        }
    }
}
