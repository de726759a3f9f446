@testable import CacheProxy

/// The result of parsing the heads of one response.
struct ParsedResponse {
    var interimHeads: [UpstreamHead] = []
    /// The head of the response, and the offset of its end in the whole text.
    var head: UpstreamHead?
    var end: Int?
    var fault: ResponseFault?

    /// Parses `bytes`, of which each call of the parser gets `stepBytes` more.
    init(
        _ bytes: [UInt8],
        stepBytes: Int = .max,
        isHead: Bool = false,
        limits: ResponseLimits = ResponseLimits()
    ) {
        var parser = ResponseParser(isHead: isHead)
        var start = 0
        var given = 0
        while given < bytes.count {
            given += min(stepBytes, bytes.count - given)
            parsing: while true {
                let step = parser.parse(bytes.span.extracting(start..<given), limits)
                switch step {
                case .needsMore: break parsing
                case .interim(let end):
                    interimHeads.append(parser.head)
                    start += end
                case .complete(let end):
                    head = parser.head
                    self.end = start + end
                    return
                case .refused(let fault):
                    self.fault = fault
                    return
                }
            }
        }
    }

    init(_ text: String, isHead: Bool = false, limits: ResponseLimits = ResponseLimits()) {
        self.init(Array(text.utf8), isHead: isHead, limits: limits)
    }

    /// Parses the same text byte by byte.
    static func byBytes(
        _ text: String,
        isHead: Bool = false,
        limits: ResponseLimits = ResponseLimits()
    ) -> Self {
        Self(Array(text.utf8), stepBytes: 1, isHead: isHead, limits: limits)
    }

    /// Everything that can be compared, for tests with pieces of any size.
    var summary: String {
        let heads = (interimHeads + [head].compactMap(\.self)).map { head in
            "\(head.status) \(head.framing) \(head.mayPersist) \(head.isFramedTwice)\n\(head.section)"
        }
        return "\(heads) \(end ?? -1) \(fault?.text ?? "")"
    }
}
