/// The bodies of a shard in the order in which they make room.
///
/// One pass over all bodies fills the line for many uses. A body that was renewed, spared or removed
/// since has another age than the line says, and is skipped; a new body is younger than all in the
/// line. Only the sum of the pinned bytes grows old, so the line is filled again after a while.
struct BodyLine {
    struct Element: Sendable {
        let identity: UInt64
        let age: UInt64
        let occupiedBytes: Int
        let isPinned: Bool
    }

    /// The part of the line that is used before it is filled again: a quarter.
    private static let usedDivisor = 4

    /// The youngest first.
    private var plain: [Element] = []
    /// The youngest first.
    private var pinned: [Element] = []
    private var pinnedBytes = 0
    private var usesLeft = 0
    /// The passes over all bodies so far.
    private(set) var fills = 0

    /// Whether a pass over all bodies must fill the line before its next use.
    ///
    /// Pinned bodies within their share are dropped only if a pass finds no other one.
    func isUsedUp(pinnedBytesMax: Int) -> Bool {
        usesLeft <= 0 || plain.isEmpty && pinnedBytes <= pinnedBytesMax
            || Mutant.fillsTheLineAtEachUse.isOn
    }

    mutating func fill(with bodies: [Element]) {
        fills += 1
        let sorted = bodies.sorted { $0.age > $1.age }
        plain = sorted.filter { !$0.isPinned }
        pinned = sorted.filter(\.isPinned)
        pinnedBytes = pinned.reduce(0) { $0 + $1.occupiedBytes }
        usesLeft = sorted.count / Self.usedDivisor + 1
    }

    /// Drops the oldest bodies that the line should not hold any more.
    mutating func skip(where isGone: (Element) -> Bool) {
        while let next = plain.last, isGone(next) { plain.removeLast() }
        while let next = pinned.last, isGone(next) {
            pinned.removeLast()
            pinnedBytes -= next.occupiedBytes
        }
    }

    mutating func noteUse() { usesLeft -= 1 }

    /// The body to drop next, and whether everything else should be dropped before it.
    ///
    /// Pinned bodies come last as long as they stay within their share.
    func next(pinnedBytesMax: Int) -> (body: Element, isLast: Bool)? {
        let isBeyondShare = pinnedBytes > pinnedBytesMax
        if let body = pinned.last, isBeyondShare || plain.isEmpty { return (body, !isBeyondShare) }
        return plain.last.map { ($0, false) }
    }
}
