/// Joins the small pieces of one arriving body, so that each byte of it costs about one byte of
/// memory: an origin may send single bytes.
///
/// Of two chunks that follow each other, as joined, one is larger than half of `joinedBytesMax`.
struct ChunkJoint {
    /// The largest chunk that is made of several pieces.
    static let joinedBytesMax = 4 << 10

    /// The last chunk, unless it is too large for another piece.
    private var last: ByteChunk?

    /// The last chunk and `piece` in one; `nil` if the piece stays a chunk of its own.
    mutating func join(_ piece: ByteChunk) -> ByteChunk? {
        let joined = last.flatMap { Self.joined($0, piece) }
        let chunk = joined ?? piece
        last = chunk.count < Self.joinedBytesMax ? chunk : nil
        return joined
    }

    private static func joined(_ first: ByteChunk, _ second: ByteChunk) -> ByteChunk? {
        guard first.count + second.count <= joinedBytesMax, !Mutant.keepsSmallPieces.isOn else {
            return nil
        }
        return ByteChunk(joining: [first, second])
    }
}

extension [ByteChunk] {
    /// Puts `joined` in the place of the last chunk, if it is that chunk and `piece` in one; returns
    /// `false` if it is not, so that the piece becomes a chunk of its own.
    mutating func joinLast(with piece: ByteChunk, as joined: ByteChunk?) -> Bool {
        guard let joined, let last, last.count + piece.count == joined.count else { return false }
        self[count - 1] = joined
        return true
    }
}
