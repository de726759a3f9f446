import CacheTestSupport
import RESP

/// The values in some bytes, and the fault that ended them.
struct Reading: Equatable {
    var values: [RESPValue] = []
    var fault: RESPFault?

    init(values: [RESPValue]) { self.values = values }

    init(_ text: String, pieceBytes: Int, _ limits: RESPLimits = RESPLimits()) {
        self.init(Array(text.utf8), pieceBytes: pieceBytes, limits)
    }

    init(_ bytes: [UInt8], pieceBytes: Int, _ limits: RESPLimits = RESPLimits()) {
        self.init(bytes, cuts: Array(stride(from: 0, to: bytes.count, by: pieceBytes)), limits)
    }

    /// Reads the pieces between the cuts.
    init(_ bytes: [UInt8], cuts: [Int], _ limits: RESPLimits = RESPLimits()) {
        var parser = RESPParser(limits)
        let edges = [0] + cuts + [bytes.count]
        for (lower, upper) in zip(edges, edges.dropFirst()) {
            let piece = bytes.span.extracting(lower..<upper)
            var place = 0
            reading: while true {
                switch parser.parse(piece, from: place) {
                case .value(let value, let end):
                    values.append(value)
                    place = end
                case .needsMore: break reading
                case .refused(let fault):
                    self.fault = fault
                    return
                }
            }
        }
    }
}

extension RESPParser {
    mutating func step(_ text: String) -> Step {
        parse(Array(text.utf8).span)
    }
}

extension RESPValue {
    /// The bytes that a server sends for the value.
    var encoded: [UInt8] {
        switch self {
        case .simple(let text): Array("+\(text)\r\n".utf8)
        case .error(let text): Array("-\(text)\r\n".utf8)
        case .integer(let number): Array(":\(number)\r\n".utf8)
        case .bulk(let bytes): Array("$\(bytes.count)\r\n".utf8) + bytes + [0x0D, 0x0A]
        case .array(let values):
            values.reduce(into: Array("*\(values.count)\r\n".utf8)) { $0 += $1.encoded }
        case .nilBulk: Array("$-1\r\n".utf8)
        case .nilArray: Array("*-1\r\n".utf8)
        }
    }

    static func random(_ random: inout SeededRandom, depth: Int) -> RESPValue {
        switch random.next() % (depth > 0 ? 8 : 6) {
        case 0: .simple(String(repeating: "ok", count: Int(random.next() % 20)))
        case 1: .error("ERR " + String(random.next()))
        case 2: .integer(Int64(bitPattern: random.next()))
        case 3: .nilBulk
        case 4: .nilArray
        case 5:
            .bulk(
                (0..<Int(random.next() % 300)).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            )
        default:
            .array(
                (0..<Int(random.next() % 6)).map { _ in .random(&random, depth: depth - 1) }
            )
        }
    }
}
