import HTTPCaching

/// The union of a part that has arrived and the stored parts (RFC 9111 §3.4).
///
/// A pure value: it reads no body.
struct PartialMerge: Sendable {
    /// The parts that are held afterwards.
    let parts: PartialBody
    /// The bytes of `parts`, in order.
    let pieces: [Piece]
    /// Whether the stored parts are worth a copy for the part that has arrived.
    ///
    /// A copy takes all that is held, so a request for one byte must not cause one. A part is worth
    /// it if it is at least a sixteenth of what is held, closes a gap, or completes the whole.
    let isWorthACopy: Bool

    /// The stored parts have at most as many times the bytes of a part that is joined with them.
    private static let heldTimesMax = 16

    enum Piece: Hashable, Sendable {
        /// Bytes of the representation that are stored.
        case stored(Range<Int>)
        /// The part that has arrived.
        case arrived

        fileprivate func count(_ arrived: Range<Int>) -> Int {
            switch self {
            case .stored(let range): range.count
            case .arrived: arrived.count
            }
        }
    }

    /// Returns `nil` if the part contradicts the stored ones, or there would be too many.
    init?(_ content: ContentRange, joining stored: PartialBody?) {
        var parts = stored ?? PartialBody(bodySize: content.bodySize)
        guard let range = content.range, parts.add(content) == .added else { return nil }
        self.parts = parts
        let held = stored?.parts ?? []
        let heldBytes = stored?.heldBytes ?? 0
        let isTiny = range.count <= (heldBytes - 1) / Self.heldTimesMax
        isWorthACopy = !isTiny || parts.parts.count < held.count || parts.isComplete
        pieces = parts.parts.flatMap { part in
            let inside = held.filter { part.contains($0.lowerBound) }
            let before = inside.filter { $0.lowerBound < range.lowerBound }.map {
                Piece.stored($0.lowerBound..<min($0.upperBound, range.lowerBound))
            }
            let after = inside.filter { $0.upperBound > range.upperBound }.map {
                Piece.stored(max($0.lowerBound, range.upperBound)..<$0.upperBound)
            }
            return before + (part.contains(range.lowerBound) ? [.arrived] : []) + after
        }
        assert(pieces.reduce(0) { $0 + $1.count(range) } == parts.heldBytes, "the whole of them")
    }
}
