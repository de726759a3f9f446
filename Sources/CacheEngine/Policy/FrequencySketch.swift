import Synchronization

/// An estimate of how often each key was requested recently.
///
/// It is a count-min sketch of four-bit counters. It uses the conservative update of Estan and
/// Varghese and the ageing of TinyLFU (https://arxiv.org/abs/1512.00727): all counters are halved
/// after a number of counts, so old counts fade. Deviation: the sketches of all shards are halved
/// together (`SketchAge`), so that counts of keys in different shards are comparable. A key's count
/// outlives its entry.
///
/// Invariants:
/// 1. `width` is a power of two; row `r` is the counters `r * width ..< (r + 1) * width`.
/// 2. `halvings` is at most `age.halvings`, and equal to it after each call.
///
/// Not `Copyable`: it owns its counters.
struct FrequencySketch: ~Copyable {
    static let frequencyMax = 15
    private static let rows = 4
    private static let countersPerWord = 16

    private var words: UnsafeMutablePointer<UInt64>
    private var width: Int
    private var keys: Int
    private var halvings: UInt64
    private let age: SketchAge

    /// A sketch with room to distinguish `keys` keys.
    init(keys: Int, age: SketchAge) {
        width = Self.width(keys: keys)
        words = Self.makeWords(width: width)
        self.keys = keys
        self.age = age
        halvings = age.halvings
        age.addKeys(keys)
    }

    deinit {
        age.addKeys(-keys)
        words.deallocate()
    }

    static func sizeBytes(keys: Int) -> Int {
        width(keys: keys) * rows / 2
    }

    /// The recent count of the key; between halvings it is never too low, but may be too high.
    mutating func frequency(of identity: UInt64) -> Int {
        fade()
        var least = Self.frequencyMax
        for row in 0..<Self.rows {
            let (word, shift) = place(of: identity, row: row)
            least = min(least, Int(words[word] >> shift & 15))
        }
        return least
    }

    /// Whether no halving is due.
    var isCurrent: Bool { halvings == age.halvings }

    /// Counts the key `times` times.
    mutating func count(_ identity: UInt64, times: Int = 1) {
        let target = UInt64(min(Self.frequencyMax, frequency(of: identity) + times))
        for row in 0..<Self.rows {
            let (word, shift) = place(of: identity, row: row)
            if words[word] >> shift & 15 < target {
                words[word] = words[word] & ~(15 << shift) | target << shift
            }
        }
        age.note(times)
    }

    /// Enlarges the sketch for more keys and keeps the counts.
    mutating func grow(keys: Int) {
        age.addKeys(keys - self.keys)
        self.keys = keys
        while width < Self.width(keys: keys) {
            let old = words
            let rowWords = width / Self.countersPerWord
            words = Self.makeWords(width: width * 2)
            for row in 0..<Self.rows {
                // A key's place in the wider row is its old place, or its old place plus the old
                // width.
                let source = old + row * rowWords
                (words + row * 2 * rowWords).update(from: source, count: rowWords)
                (words + (row * 2 + 1) * rowWords).update(from: source, count: rowWords)
            }
            old.deallocate()
            width *= 2
        }
    }

    /// Performs the halvings that became due since the last call.
    private mutating func fade() {
        let due = age.halvings
        guard halvings != due, !Mutant.sketchNeverFades.isOn else { return }
        // Four halvings clear a four-bit counter.
        for _ in 0..<min(4, due - halvings) {
            for word in 0..<width * Self.rows / Self.countersPerWord {
                words[word] = words[word] >> 1 & 0x7777_7777_7777_7777
            }
        }
        halvings = due
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

    /// The counters in a row: between 1.5 and 3 for each key.
    private static func width(keys: Int) -> Int {
        var width = widthMin
        while width < keys * 3 / 2 { width *= 2 }
        return width
    }

    private static func makeWords(width: Int) -> UnsafeMutablePointer<UInt64> {
        let count = width * rows / countersPerWord
        let words = UnsafeMutablePointer<UInt64>.allocate(capacity: count)
        words.initialize(repeating: 0, count: count)
        return words
    }
}

/// The common age of all sketches of one memory: they are halved after a number of counts.
final class SketchAge: Sendable {
    private let counted = Atomic(0)
    private let keys = Atomic(0)
    private let halvingsDone = Atomic<UInt64>(0)
    private static let countsPerKey = 20
    /// A minimum, so that a memory of few entries does not forget too fast.
    private static let keysMin = 64

    /// The number of halvings that each counter should have undergone.
    var halvings: UInt64 { halvingsDone.load(ordering: .relaxed) }

    /// Adds `change` to the number of keys that the sketches distinguish.
    func addKeys(_ change: Int) { keys.add(change, ordering: .relaxed) }

    /// Adds counted requests.
    func note(_ times: Int) {
        let sum = counted.add(times, ordering: .relaxed).newValue
        let limit = max(keys.load(ordering: .relaxed), Self.keysMin) * Self.countsPerKey
        guard sum >= limit else { return }
        // Several threads may see the limit exceeded; the one that lowers `counted` starts the
        // halving.
        let (isDue, _) = counted.compareExchange(
            expected: sum,
            desired: sum / 2,
            ordering: .relaxed
        )
        if isDue { halvingsDone.add(1, ordering: .relaxed) }
    }
}
