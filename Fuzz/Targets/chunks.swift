// sources: Sources/CacheProxy/Wire/ByteClass.swift Sources/CacheProxy/Wire/ChunkDecoder.swift Sources/CacheProxy/Mutant.swift
/// Chunked bodies: the decoded bytes do not depend on the cuts and lie within the input.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let cut = 1 + Int(start[0]) % 17
    let bytes = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
    let whole = decode(bytes, pieceBytes: bytes.count)
    let pieces = decode(bytes, pieceBytes: cut)
    precondition(whole.content == pieces.content && whole.end == pieces.end)
    precondition(whole.isRefused == pieces.isRefused)
    return 0
}

private func decode(
    _ bytes: UnsafeRawBufferPointer,
    pieceBytes: Int
) -> (content: [UInt8], end: Int?, isRefused: Bool) {
    var decoder = ChunkDecoder(.request(contentBytesMax: .max))
    var content: [UInt8] = []
    var place = 0
    while place < bytes.count {
        let upper = min(bytes.count, place + pieceBytes)
        let piece = UnsafeRawBufferPointer(rebasing: bytes[place..<upper])
        var offset = 0
        feeding: while true {
            switch decoder.decode(Span(_unsafeBytes: piece), from: offset) {
            case .data(let range):
                precondition(range.lowerBound >= offset && range.upperBound <= piece.count)
                content += piece[range]
                offset = range.upperBound
            case .needsMore: break feeding
            case .end(let end): return (content, place + end, false)
            case .refused: return (content, nil, true)
            }
        }
        place = upper
    }
    return (content, nil, false)
}
