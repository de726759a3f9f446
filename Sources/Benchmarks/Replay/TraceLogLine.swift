/// A line of a web server's log, in the common format or one that continues it.
///
/// Clients send anything, so the quoted text need not be a request: a server writes `"-"` for a
/// connection without one, and `"\x16\x03\x01"` for TLS on a port without TLS.
struct TraceLogLine {
    /// Empty if the quoted text is no request.
    private(set) var method = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var target = UnsafeRawBufferPointer(start: nil, count: 0)
    let sizeBytes: UInt64

    private static let quote = UInt8(ascii: "\"")
    private static let backslash = UInt8(ascii: "\\")

    /// `nil` if no quoted text is followed by a status and a size.
    init?(_ line: UnsafeRawBufferPointer) {
        guard let open = line.firstIndex(of: Self.quote),
            let close = Self.closingQuote(line, after: open)
        else { return nil }
        let rest = line[(close + 1)...].split { $0 == 0x20 || $0 == 0x0D }
            .map { UnsafeRawBufferPointer(rebasing: $0) }
        guard rest.count >= 2, rest[0].count == 3, TraceLineReader.number(rest[0]) != nil else {
            return nil
        }
        // A response without content has a dash.
        let isEmpty = rest[1].elementsEqual("-".utf8)
        guard let size = isEmpty ? 0 : TraceLineReader.number(rest[1]) else { return nil }
        sizeBytes = size
        let words = line[(open + 1)..<close].split(separator: 0x20)
        guard words.count >= 2, Self.isMethod(words[0]) else { return }
        method = UnsafeRawBufferPointer(rebasing: words[0])
        target = UnsafeRawBufferPointer(rebasing: words[1])
    }

    /// The quote that ends the text; one behind a backslash is part of it.
    private static func closingQuote(_ line: UnsafeRawBufferPointer, after open: Int) -> Int? {
        var index = open + 1
        while index < line.count {
            if line[index] == quote { return index }
            index += line[index] == backslash ? 2 : 1
        }
        return nil
    }

    private static func isMethod(_ word: some Collection<UInt8>) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { 0x61...0x7A ~= byte | 0x20 }
        guard let first = word.first, isLetter(first) else { return false }
        return word.allSatisfy { isLetter($0) || "-_0123456789".utf8.contains($0) }
    }
}
