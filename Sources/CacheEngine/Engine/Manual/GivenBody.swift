/// The body of a response that the application stores: gathered in memory as far as that is
/// allowed, and read from there on as it is written to a file.
struct GivenBody {
    /// The pieces that were read.
    private(set) var gathered: [ByteChunk] = []
    /// The number of those that `next` has returned.
    private var handedOutCount = 0
    /// The bytes that were read.
    private var readCount = 0
    /// The part that is yet to be read; `nil` if the whole body is gathered.
    private var rest: BodyStream.AsyncIterator?
    /// The length of the whole body, if it is known.
    let count: Int?

    /// Reads the body up to its end, or as far as more than the limit has been read; a body that is
    /// known to be longer is not read yet.
    init(_ body: BodyStream, gatheredBytesMax: Int) async throws {
        count = body.count
        var iterator = body.makeAsyncIterator()
        if let count, count > gatheredBytesMax {
            rest = iterator
            return
        }
        while let piece = try await iterator.next() {
            gathered.append(piece)
            readCount += piece.count
            if readCount > gatheredBytesMax {
                rest = iterator
                return
            }
        }
        try checkLength()
    }

    /// Whether the whole body is gathered.
    var isGathered: Bool { rest == nil }

    /// The next piece: the gathered ones, and then the rest.
    mutating func next() async throws -> ByteChunk? {
        if handedOutCount < gathered.count {
            defer { handedOutCount += 1 }
            return gathered[handedOutCount]
        }
        (gathered, handedOutCount) = ([], 0)
        if let piece = try await rest?.next() {
            readCount += piece.count
            return piece
        }
        try checkLength()
        return nil
    }

    private func checkLength() throws {
        if let count, readCount < count { throw CacheError.bodyEnded(after: readCount, of: count) }
    }
}
