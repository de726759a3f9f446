import CacheEngine

/// A line of a web server's log, in the common format or one that continues it.
///
/// cache-proxy continues the combined format by the source of the response, the seconds and the
/// host.
///
/// Clients send anything, so the quoted text need not be a request: a server writes `"-"` for a
/// connection without one, and `"\x16\x03\x01"` for TLS on a port without TLS.
struct TraceLogLine {
    /// Empty if the quoted text is no request.
    private(set) var method = UnsafeRawBufferPointer(start: nil, count: 0)
    private(set) var target = UnsafeRawBufferPointer(start: nil, count: 0)
    /// The host, which only a line of cache-proxy names; empty in any other line.
    private(set) var host = UnsafeRawBufferPointer(start: nil, count: 0)
    /// `nil` for a dash: the response had no content, or its length was not known when it began.
    let sizeBytes: UInt64?

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
        sizeBytes = TraceLineReader.number(rest[1])
        guard sizeBytes != nil || Self.isDash(rest[1]) else { return nil }
        let words = line[(open + 1)..<close].split(separator: 0x20)
        guard words.count >= 2, Self.isMethod(words[0]) else { return }
        method = UnsafeRawBufferPointer(rebasing: words[0])
        target = UnsafeRawBufferPointer(rebasing: words[1])
        host = Self.host(rest)
    }

    /// The last of the words after the request if they are those of cache-proxy.
    private static func host(_ words: [UnsafeRawBufferPointer]) -> UnsafeRawBufferPointer {
        let none = UnsafeRawBufferPointer(start: nil, count: 0)
        // Status, size, referer, agent, source, seconds and host; an agent may be several words.
        guard words.count >= 7, let host = words.last, !isDash(host) else { return none }
        let (agent, source) = (words[words.count - 4], words[words.count - 3])
        guard words[2].first == quote, agent.last == quote,
            isDash(source) || sources.contains(where: { source.elementsEqual($0) }),
            TraceLineReader.isDecimal(words[words.count - 2])
        else { return none }
        return host
    }

    private static let sources = CacheInfo.Source.allCases.map { [UInt8]($0.rawValue.utf8) }

    private static func isDash(_ word: UnsafeRawBufferPointer) -> Bool {
        word.count == 1 && word[0] == UInt8(ascii: "-")
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
