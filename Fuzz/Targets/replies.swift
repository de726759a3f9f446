import RESP

/// Replies of a Redis server: the values and the fault do not depend on the cuts, every limit holds,
/// and a value that is written again is read again.
///
/// The first byte is the size of the pieces.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    guard count > 1 else { return 0 }
    let bytes = Span(_unsafeStart: start + 1, count: count - 1)
    let whole = Reading(bytes, pieceBytes: bytes.count)
    precondition(whole == Reading(bytes, pieceBytes: 1 + Int(start[0]) % 17))
    precondition(whole == Reading(bytes, pieceBytes: 1))
    let written = whole.values.flatMap(encoded)
    // The replacement of a byte that is not UTF-8 takes three.
    let wide = RESPLimits(lineBytesMax: 3 * limits.lineBytesMax, totalBytesMax: 1 << 20)
    let again = Reading(written.span, pieceBytes: max(1, written.count), wide)
    precondition(again.values == whole.values && again.fault == nil)
    return 0
}

private let limits = RESPLimits(
    lineBytesMax: 300,
    bulkBytesMax: 1_000,
    arrayCountMax: 50,
    depthMax: 4,
    totalBytesMax: 2_000
)

private struct Reading: Equatable {
    var values: [RESPValue] = []
    var fault: RESPFault?
    var isBetweenReplies = false

    init(_ bytes: Span<UInt8>, pieceBytes: Int, _ permitted: RESPLimits = limits) {
        var parser = RESPParser(permitted)
        var start = 0
        while start < bytes.count, fault == nil {
            let end = min(bytes.count, start + pieceBytes)
            read(bytes.extracting(start..<end), &parser)
            start = end
        }
        isBetweenReplies = parser.isBetweenReplies
    }

    private mutating func read(_ piece: Span<UInt8>, _ parser: inout RESPParser) {
        var place = 0
        while true {
            switch parser.parse(piece, from: place) {
            case .value(let value, let end):
                precondition(end > place && end <= piece.count)
                precondition(bytesTaken(by: value, depth: 0) <= parser.limits.totalBytesMax)
                values.append(value)
                place = end
            case .needsMore: return
            case .refused(let fault):
                self.fault = fault
                return
            }
        }
    }
}

/// The bytes that the limits count; checks the limits of one value.
private func bytesTaken(by value: RESPValue, depth: Int) -> Int {
    switch value {
    case .bulk(let bytes):
        precondition(bytes.count <= limits.bulkBytesMax)
        return bytes.count
    case .array(let values):
        precondition(values.isEmpty || depth < limits.depthMax)
        precondition(values.count <= limits.arrayCountMax)
        return values.reduce(values.count * RESPLimits.elementBytes) {
            $0 + bytesTaken(by: $1, depth: depth + 1)
        }
    // Bytes that are not UTF-8 were replaced, so the text may be longer than the line.
    case .simple, .error, .integer, .nilBulk, .nilArray: return 0
    }
}

/// The bytes that a server sends for the value.
private func encoded(_ value: RESPValue) -> [UInt8] {
    switch value {
    case .simple(let text): Array("+\(text)\r\n".utf8)
    case .error(let text): Array("-\(text)\r\n".utf8)
    case .integer(let number): Array(":\(number)\r\n".utf8)
    case .bulk(let bytes): Array("$\(bytes.count)\r\n".utf8) + bytes + [0x0D, 0x0A]
    case .array(let values): Array("*\(values.count)\r\n".utf8) + values.flatMap(encoded)
    case .nilBulk: Array("$-1\r\n".utf8)
    case .nilArray: Array("*-1\r\n".utf8)
    }
}
