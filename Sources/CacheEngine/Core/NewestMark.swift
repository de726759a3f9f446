import Synchronization

/// The numbers of the newest soft purges, which hits read without the lock of the marks.
///
/// An entry with a number that is not smaller was stored later, so no mark covers it. Raised by the
/// holder of that lock; the numbers never fall.
final class NewestMark: Sendable {
    private let ofTags = Atomic<UInt64>(0)
    private let ofEverything = Atomic<UInt64>(0)

    /// Notes a mark of a tag.
    func raise(to sequence: UInt64) { Self.raise(ofTags, to: sequence) }

    /// Notes a mark that covers entries without tags too.
    func raiseForEverything(to sequence: UInt64) {
        Self.raise(ofEverything, to: sequence)
        raise(to: sequence)
    }

    /// Whether a mark may cover an entry with that number; `false` is certain.
    func mayCover(_ sequence: UInt64, hasTags: Bool) -> Bool {
        let newest =
            hasTags ? ofTags.load(ordering: .acquiring) : ofEverything.load(ordering: .acquiring)
        return sequence < newest
    }

    private static func raise(_ number: borrowing Atomic<UInt64>, to sequence: UInt64) {
        guard sequence > number.load(ordering: .relaxed) else { return }
        number.store(sequence, ordering: .releasing)
    }
}
