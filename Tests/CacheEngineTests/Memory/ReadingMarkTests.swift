import Testing

@testable import CacheEngine

/// The mark of a reader, as a writer sees it at two moments.
@Suite struct ReadingMarkTests {
    /// The mark after these changes: `e` enters, `l` leaves.
    private func mark(_ changes: String, from word: UInt64 = 0) -> ReadingMark {
        var mark = ReadingMark(word: word)
        for change in changes {
            if change == "e" { mark.enter() } else { mark.leave() }
        }
        return mark
    }

    @Test(arguments: [
        ("", "", false), ("", "e", false), ("e", "", true), ("e", "l", false),
        // The reader has left and come back between the two looks.
        ("e", "le", false), ("e", "lele", false), ("e", "elele", true),
        // Readings nest.
        ("ee", "l", true), ("e", "el", true), ("ee", "le", true), ("ee", "ll", false),
        ("ee", "llee", false), ("ele", "l", false), ("e", "eell", true),
    ])
    func readingGoesOnUntilTheOutermostEnds(before: String, after: String, goesOn: Bool) {
        let met = mark(before)
        #expect(met.goesOn(in: mark(after, from: met.word)) == goesOn)
    }

    @Test func endsAreCountedAnewAfterTheLargest() {
        let met = mark("e", from: UInt64(UInt32.max) << 32)
        let later = mark("le", from: met.word)
        #expect(later == mark("e"))
        #expect(!met.goesOn(in: later))
    }
}
