// sources: Sources/CacheProxy/Wire/ByteClass.swift Sources/CacheProxy/Wire/BodyFraming.swift Sources/CacheProxy/Wire/ChunkDecoder.swift Sources/CacheProxy/Wire/BodyDecoder.swift Sources/CacheProxy/Upstream/ResponseFault.swift Sources/CacheProxy/Upstream/ResponseLimits.swift Sources/CacheProxy/Upstream/UpstreamHead.swift Sources/CacheProxy/Upstream/ResponseParser.swift Sources/CacheProxy/Mutant.swift
import HTTPCaching

/// Responses of origins: the heads and the content do not depend on the cuts, and every field can
/// be sent on.
///
/// The first byte is the size of the pieces, and whether the request was a HEAD.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let isHead = start[0] >= 0xF0
    let bytes = UnsafeRawBufferPointer(start: start + 1, count: count - 1)
    let whole = Response(bytes, pieceBytes: bytes.count, isHead: isHead)
    let pieces = Response(bytes, pieceBytes: 1 + Int(start[0]) % 17, isHead: isHead)
    precondition(whole == pieces)
    return 0
}

private struct Response: Equatable {
    var sections: [FieldSection] = []
    var statuses: [Int] = []
    var framing: BodyFraming?
    var content: [UInt8] = []
    var end: Int?
    var fault: ResponseFault?
    var isTruncated: Bool?

    init(_ bytes: UnsafeRawBufferPointer, pieceBytes: Int, isHead: Bool) {
        var limits = ResponseLimits()
        limits.headBytesMax = 1_024
        limits.fieldCountMax = 16
        limits.interimCountMax = 4
        limits.trailerBytesMax = 256
        var parser = ResponseParser(isHead: isHead)
        var headStart = 0
        var given = 0
        while framing == nil, given < bytes.count {
            given = min(bytes.count, given + pieceBytes)
            parsing: while true {
                let piece = UnsafeRawBufferPointer(rebasing: bytes[headStart..<given])
                switch parser.parse(Span(_unsafeBytes: piece), limits) {
                case .needsMore: break parsing
                case .interim(let end):
                    precondition(end > 0 && end <= piece.count && parser.head.framing == .none)
                    take(parser.head)
                    headStart += end
                case .complete(let end):
                    precondition(end > 0 && end <= piece.count && piece[end - 1] == 10)
                    take(parser.head)
                    framing = parser.head.framing
                    headStart += end
                    break parsing
                case .refused(let fault):
                    self.fault = fault
                    return
                }
            }
        }
        guard let framing else { return }
        decode(bytes, from: headStart, framing, limits, pieceBytes)
    }

    /// Records a head, which must hold nothing that could split a message.
    private mutating func take(_ head: UpstreamHead) {
        precondition(head.section.withUnsafeBytes { FieldSection(decoding: $0) } == head.section)
        if head.status >= 200 {
            let lengths = head.section.values("Content-Length")
            precondition(lengths.count <= 1)
            if case .length(let length) = head.framing {
                precondition(lengths == [String(length)] && length >= 0)
            }
            let codings = head.section.values("Transfer-Encoding")
            precondition(codings.isEmpty || codings.count == 1 && lengths.isEmpty)
            precondition(head.framing != .chunked || codings.count == 1)
        }
        sections.append(head.section)
        statuses.append(head.status)
    }

    private mutating func decode(
        _ bytes: UnsafeRawBufferPointer,
        from start: Int,
        _ framing: BodyFraming,
        _ limits: ResponseLimits,
        _ pieceBytes: Int
    ) {
        var decoder = BodyDecoder(
            framing,
            of: .response(trailerBytesMax: limits.trailerBytesMax)
        )
        var place = start
        while place < bytes.count {
            let upper = min(bytes.count, place + pieceBytes)
            let piece = UnsafeRawBufferPointer(rebasing: bytes[place..<upper])
            var offset = 0
            feeding: while true {
                switch decoder.decode(Span(_unsafeBytes: piece), from: offset) {
                case .data(let range):
                    precondition(range.lowerBound == offset || framing == .chunked)
                    precondition(range.lowerBound >= offset && range.upperBound <= piece.count)
                    precondition(!range.isEmpty)
                    content += piece[range]
                    offset = range.upperBound
                case .needsMore: break feeding
                case .end(let end):
                    precondition(decoder.isAtEnd && decoder.connectionEnded())
                    self.end = place + end
                    return
                case .refused:
                    fault = .malformedChunk
                    return
                }
            }
            place = upper
        }
        isTruncated = !decoder.connectionEnded()
    }
}
