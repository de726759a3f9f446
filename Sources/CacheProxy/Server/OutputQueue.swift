import CacheEngine

/// The bytes that a socket has not taken yet.
///
/// Bodies are shared with the cache. While the socket takes nothing, a piece that is a small part of
/// its storage is copied instead: a client that asks for many parts and reads none would hold an
/// entry with each of them.
///
/// Invariants:
/// 1. `bytes` is the sum of all pieces from `first` on, less `offset`.
/// 2. `offset` is within the first piece.
/// 3. `examined <= pieces.count`.
struct OutputQueue {
    private(set) var pieces: [ByteChunk] = []
    private(set) var first = 0
    /// Bytes of the first piece that were sent.
    private(set) var offset = 0
    private(set) var bytes = 0
    /// The pieces before this index were examined by `waitForSocket`.
    private var examined = 0

    /// A piece is copied if its storage is more than this many times as large.
    private static let storageFactorMax = 4

    var isEmpty: Bool { bytes == 0 }
    /// The bytes, and the overhead of their pieces.
    var cost: Int { bytes + (pieces.count - first) * ByteChunk.overheadBytes }

    mutating func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        pieces.append(chunk)
        bytes += chunk.count
    }

    /// The socket takes nothing now, and the client decides how long.
    ///
    /// So is the rest of the first piece. A piece of `bytesMax` is not copied: no response is added
    /// behind it.
    mutating func waitForSocket(bytesMax: Int) {
        for index in max(first, examined)..<pieces.count {
            if let copy = Self.copy(of: pieces[index], ifBelow: bytesMax) { pieces[index] = copy }
        }
        examined = pieces.count
        guard offset > 0, let piece = pieces.dropFirst(first).first,
            let copy = Self.copy(of: piece[offset..<piece.count], ifBelow: bytesMax)
        else { return }
        pieces[first] = copy
        offset = 0
    }

    /// The copy of a piece that is a small part of its storage.
    private static func copy(of piece: ByteChunk, ifBelow bytesMax: Int) -> ByteChunk? {
        guard piece.count < bytesMax, piece.storage.capacity / storageFactorMax > piece.count,
            !Mutant.queuesWholeEntries.isOn
        else { return nil }
        return piece.withUnsafeBytes { ByteChunk(copying: $0) }
    }

    /// Visits the next pieces, the first one without its sent bytes.
    func forEach(max count: Int, _ visit: (ByteChunk) -> Void) {
        var skipped = offset
        for index in first..<min(pieces.count, first + count) {
            let piece = pieces[index]
            visit(skipped == 0 ? piece : piece[skipped..<piece.count])
            skipped = 0
        }
    }

    mutating func drop(_ count: Int) {
        precondition(count <= bytes)
        bytes -= count
        var rest = count + offset
        while first < pieces.count, rest >= pieces[first].count {
            rest -= pieces[first].count
            pieces[first] = .empty
            first += 1
        }
        offset = rest
        if bytes == 0 {
            self = OutputQueue()
        } else if first > 32, first * 2 > pieces.count {
            pieces.removeFirst(first)
            examined = max(0, examined - first)
            first = 0
        }
    }
}
