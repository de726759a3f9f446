/// About how often each key has been asked for lately: a count-min sketch of four-bit counters.
///
/// Estan and Varghese's conservative update, and the ageing of TinyLFU
/// (https://arxiv.org/abs/1512.00727): all counters are halved when enough has been counted, so the
/// past fades. A key's count outlives its entry.
///
/// Invariants:
/// 1. `width` is a power of two; row `r` is the counters `r * width ..< (r + 1) * width`.
/// 2. `countedSum` is below `halvingSum` between calls.
///
/// Not `Copyable`: it owns its counters.
struct FrequencySketch: ~Copyable {
    static let frequencyMax = 15
    private static let rows = 4
    private static let countersPerWord = 16

    private var words: UnsafeMutablePointer<UInt64>
    private var width: Int
    private var countedSum = 0
    private var halvingSum: Int

    /// A sketch that tells about `keys` keys apart.
    init(keys: Int) {
        var width = Self.widthMin
        while width < keys * 2 { width *= 2 }
        self.width = width
        words = Self.makeWords(width: width)
        halvingSum = Self.halvingSum(keys: keys)
    }

    deinit { words.deallocate() }

    static func sizeBytes(keys: Int) -> Int {
        var width = widthMin
        while width < keys * 2 { width *= 2 }
        return width * rows / 2
    }

    var sizeBytes: Int { width * Self.rows / 2 }

    /// How often the key was counted lately, never too low between halvings, sometimes too high.
    func frequency(of identity: UInt64) -> Int {
        var least = Self.frequencyMax
        for row in 0..<Self.rows {
            let (word, shift) = place(of: identity, row: row)
            least = min(least, Int(words[word] >> shift & 15))
        }
        return least
    }

    /// Counts the key `times` times.
    mutating func count(_ identity: UInt64, times: Int = 1) {
        let target = UInt64(min(Self.frequencyMax, frequency(of: identity) + times))
        for row in 0..<Self.rows {
            let (word, shift) = place(of: identity, row: row)
            if words[word] >> shift & 15 < target {
                words[word] = words[word] & ~(15 << shift) | target << shift
            }
        }
        countedSum += times
        if countedSum >= halvingSum { halve() }
    }

    /// Makes room for more keys without forgetting.
    mutating func grow(keys: Int) {
        halvingSum = Self.halvingSum(keys: keys)
        while width < keys * 2 {
            let old = words
            let rowWords = width / Self.countersPerWord
            words = Self.makeWords(width: width * 2)
            for row in 0..<Self.rows {
                // A key's place in the wider row is its old one, or that plus the old width.
                let source = old + row * rowWords
                (words + row * 2 * rowWords).update(from: source, count: rowWords)
                (words + (row * 2 + 1) * rowWords).update(from: source, count: rowWords)
            }
            old.deallocate()
            width *= 2
        }
    }

    private mutating func halve() {
        for word in 0..<width * Self.rows / Self.countersPerWord {
            words[word] = words[word] >> 1 & 0x7777_7777_7777_7777
        }
        countedSum /= 2
    }

    private func place(of identity: UInt64, row: Int) -> (word: Int, shift: UInt64) {
        let mixed = (identity ^ Self.seeds[row]).multipliedFullWidth(by: 0x9E37_79B9_7F4A_7C15)
        let counter = row * width + Int((mixed.high ^ mixed.low) & UInt64(width - 1))
        return (counter / Self.countersPerWord, UInt64(counter % Self.countersPerWord) * 4)
    }

    private static let seeds: InlineArray<4, UInt64> = [
        0x243F_6A88_85A3_08D3, 0x1319_8A2E_0370_7344, 0xA409_3822_299F_31D0, 0x082E_FA98_EC4E_6C89,
    ]
    private static let widthMin = 1024

    private static func halvingSum(keys: Int) -> Int { max(keys, 64) * 20 }

    private static func makeWords(width: Int) -> UnsafeMutablePointer<UInt64> {
        let count = width * rows / countersPerWord
        let words = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
        words.initialize(repeating: 0, count: count)
        return words
    }
}
