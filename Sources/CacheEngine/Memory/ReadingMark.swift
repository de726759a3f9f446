/// The mark of a thread that reads: how many readings it is inside of, and how many have ended.
///
/// Readings nest; only the end of the outermost one counts. The lower half of the word is the
/// depth, the upper half the number of ends, which begins anew after the largest.
struct ReadingMark: Equatable {
    private(set) var word: UInt64

    private static let oneEnd: UInt64 = 1 << 32

    init(word: UInt64 = 0) { self.word = word }

    private var depth: UInt32 { UInt32(truncatingIfNeeded: word) }

    /// Whether the thread is inside a reading.
    var isReading: Bool { depth != 0 }

    @inline(__always)
    mutating func enter() { word &+= 1 }

    @inline(__always)
    mutating func leave() {
        assert(isReading, "only a reading that was begun ends")
        word &-= 1
        if !isReading { word &+= Self.oneEnd }
    }

    /// Whether the reading that this mark shows has not ended by the time of `later`.
    ///
    /// Another one may have begun since: it began after whatever this mark was read for.
    func goesOn(in later: ReadingMark) -> Bool {
        guard isReading, later.isReading else { return false }
        return later.word >> 32 == word >> 32 || Mutant.waitsForAnEmptyGate.isOn
    }
}
