import HTTPCaching

/// The union of a part that has arrived and the stored parts (RFC 9111 §3.4).
///
/// A pure value: it reads no body.
struct PartialMerge: Sendable {
    /// The parts that are held afterwards.
    let parts: PartialBody
    /// The bytes of `parts`, in order.
    let pieces: [Piece]

    enum Piece: Hashable, Sendable {
        /// Bytes of the representation that are stored.
        case stored(Range<Int>)
        /// The part that has arrived.
        case arrived
    }

    /// Returns `nil` if the part contradicts the stored ones, or there would be too many.
    init?(_ content: ContentRange, joining stored: PartialBody?) {
        var parts = stored ?? PartialBody(bodySize: content.bodySize)
        guard let range = content.range, parts.add(content) == .added else { return nil }
        self.parts = parts
        let held = stored?.parts ?? []
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
    }
}
