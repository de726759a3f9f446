import CacheEngine

/// The bytes that a socket has not taken yet.
///
/// Bodies are shared with the cache, not copied.
///
/// Invariants:
/// 1. `bytes` is the sum of all pieces from `first` on, less `offset`.
/// 2. `offset` is within the first piece.
struct OutputQueue {
    private(set) var pieces: [ByteChunk] = []
    private(set) var first = 0
    /// Bytes of the first piece that were sent.
    private(set) var offset = 0
    private(set) var bytes = 0

    var isEmpty: Bool { bytes == 0 }

    mutating func append(_ chunk: ByteChunk) {
        guard !chunk.isEmpty else { return }
        pieces.append(chunk)
        bytes += chunk.count
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
            first = 0
        }
    }
}
