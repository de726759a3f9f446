import CacheTestSupport

/// Bodies that compress about as well as web content: words mixed with random parts.
package enum SyntheticBody {
    private static let words: [String] = [
        "<div class=\"", "\">", "</div>\n", "function(", "return ", "const ", " => ", "\"name\": ",
        "\"id\": ", "https://example.test/", "background: ", "padding: 0 ", "width: 100%;\n",
        "the ", "cache ", "of ", "and ", "response ", "request ", "stored ", "</span>",
    ]

    /// Returns the same bytes for the same `count` and `seed`; LZ4 compresses them by about 2.2.
    package static func bytes(count: Int, seed: UInt64) -> [UInt8] {
        var random = SeededRandom(seed: seed)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(count + 64)
        while bytes.count < count {
            let draw = random.next()
            if draw % 4 == 0 {
                bytes += String(draw >> 8, radix: 36).utf8
            } else {
                bytes += words[Int(draw >> 8) % words.count].utf8
            }
        }
        bytes.removeLast(bytes.count - count)
        return bytes
    }
}
