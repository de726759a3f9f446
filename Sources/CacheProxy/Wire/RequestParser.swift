import HTTPCaching
import Platform

/// Parses the head of an HTTP/1.1 request (RFC 9112), strictly, as its bytes arrive.
///
///     requestLine ──line──▶ fields ──empty line──▶ complete
///          └──────fault──────┴──────▶ refused
///
/// A pure value. Each call gets every byte of the head that has arrived, from the first one on, and
/// tells whether the head is complete. A line is parsed once; the bytes are not kept here. The
/// parser refuses everything that two parsers could read in two ways: a bare CR or LF, a folded
/// line, whitespace before a colon, two lengths, a length beside a coding (RFC 9112 §11.2).
///
/// Invariants:
/// 1. `lineStart <= scanned`, and neither is beyond the bytes given last.
/// 2. `lineStart` is the byte after a CRLF, or the first one.
struct RequestParser: Sendable {
    enum Step: Hashable, Sendable {
        case needsMore
        /// The head ends before this offset.
        case complete(Int)
        case refused(RequestFault)
    }

    private enum Phase: UInt8 {
        case requestLine
        case fields
    }

    private var phase = Phase.requestLine
    private var lineStart = 0
    private var scanned = 0
    private(set) var head = RequestHead()

    init() {}

    mutating func reset() {
        phase = .requestLine
        lineStart = 0
        scanned = 0
        head.reset()
    }

    /// Whether the bytes given last are the empty line that may precede a request line, and no more.
    ///
    /// Some clients send it after content (RFC 9112 §2.2): no head has begun.
    var hasOnlyEmptyLine: Bool {
        phase == .requestLine && lineStart > 0 && lineStart == scanned
    }

    /// Parses the new lines in `bytes`.
    mutating func parse(_ bytes: Span<UInt8>, _ limits: WireLimits) -> Step {
        while let lineEnd = ByteClass.nextLineFeed(in: bytes, scanned: &scanned) {
            guard lineEnd > lineStart, bytes[lineEnd - 1] == 0x0D else {
                return .refused(.malformedLineEnd)
            }
            let line = lineStart..<(lineEnd - 1)
            scanned = lineEnd + 1
            if let fault = fault(of: line, limits) { return .refused(fault) }
            let isEmpty = line.isEmpty
            lineStart = lineEnd + 1
            switch phase {
            case .requestLine:
                // One empty line before the request line is ignored (RFC 9112 §2.2).
                if isEmpty, line.lowerBound == 0 { continue }
                if let fault = parseRequestLine(line, bytes) { return .refused(fault) }
                phase = .fields
            case .fields where isEmpty:
                if let fault = finish(limits) { return .refused(fault) }
                return .complete(lineStart)
            case .fields:
                if let fault = parseField(line, bytes, limits) { return .refused(fault) }
            }
        }
        return checkUnfinishedLine(bytes, limits)
    }

    private func fault(of line: Range<Int>, _ limits: WireLimits) -> RequestFault? {
        if line.upperBound + 2 > limits.headBytesMax { return .headTooLarge }
        guard line.count > limits.lineBytesMax else { return nil }
        return phase == .requestLine ? .targetTooLong : .lineTooLong
    }

    /// Limits hold for incomplete lines too, so that an attack is not read to its end.
    private func checkUnfinishedLine(
        _ bytes: Span<UInt8>,
        _ limits: WireLimits
    ) -> Step {
        let count = bytes.count - lineStart
        if count > 0 {
            let first = bytes[lineStart]
            switch phase {
            case .requestLine:
                guard ByteClass.isToken(first) || (first == 0x0D && lineStart == 0) else {
                    return .refused(.malformedRequestLine)
                }
            case .fields:
                guard ByteClass.isToken(first) || first == 0x0D else {
                    return .refused(.malformedField)
                }
            }
        }
        if count > limits.lineBytesMax {
            return .refused(phase == .requestLine ? .targetTooLong : .lineTooLong)
        }
        if bytes.count >= limits.headBytesMax { return .refused(.headTooLarge) }
        return .needsMore
    }
}

// MARK: - The request line (RFC 9112 §3)

extension RequestParser {
    /// Bytes of a method's name.
    private static let methodBytesMax = 32
    /// Bytes of a request target (RFC 9112 §3 asks for 8,000 at least).
    private static let targetBytesMax = 8 * 1024

    private mutating func parseRequestLine(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> RequestFault? {
        let text = bytes.extracting(line)
        let methodEnd = ByteClass.end(of: text, while: ByteClass.isToken)
        head.method = line.lowerBound..<line.lowerBound + methodEnd
        guard !head.method.isEmpty, methodEnd < text.count, text[methodEnd] == 0x20 else {
            return .malformedRequestLine
        }
        if head.method.count > Self.methodBytesMax { return .methodTooLong }
        let targetEnd = ByteClass.end(of: text, from: methodEnd + 1, while: ByteClass.isTarget)
        head.target = head.method.upperBound + 1..<line.lowerBound + targetEnd
        guard !head.target.isEmpty, targetEnd < text.count, text[targetEnd] == 0x20 else {
            return .malformedRequestLine
        }
        if head.target.count > Self.targetBytesMax { return .targetTooLong }
        if let fault = parseVersion(text.extracting((targetEnd + 1)...)) { return fault }
        head.methodKind = bytes.extracting(head.method).withUnsafeBytes {
            MethodKind(nameBytes: $0)
        }
        return nil
    }

    private mutating func parseVersion(_ text: Span<UInt8>) -> RequestFault? {
        guard text.count == 8, Self.isProtocolName(text),
            ByteClass.isDigit(text[5]), text[6] == 0x2E, ByteClass.isDigit(text[7])
        else { return .malformedRequestLine }
        guard text[5] == 0x31 else { return .versionUnknown }
        if text[7] == 0x30 { head.flags.insert(.isOldVersion) }
        return nil
    }

    private static func isProtocolName(_ text: Span<UInt8>) -> Bool {
        text[0] == 0x48 && text[1] == 0x54 && text[2] == 0x54 && text[3] == 0x50 && text[4] == 0x2F
    }
}

// MARK: - Field lines (RFC 9112 §5)

extension RequestParser {
    private mutating func parseField(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>,
        _ limits: WireLimits
    ) -> RequestFault? {
        guard head.fields.count < limits.fieldCountMax else { return .fieldsTooMany }
        let text = bytes.extracting(line)
        var nameEnd = ByteClass.end(of: text, while: ByteClass.isPlainName)
        if nameEnd < text.count, text[nameEnd] != 0x3A {
            nameEnd = ByteClass.end(of: text, from: nameEnd, while: ByteClass.isToken)
            head.flags.insert(.hasOddNames)
        }
        // Whitespace at the start (a folded line) or before the colon is refused here too.
        guard nameEnd > 0, nameEnd < text.count, text[nameEnd] == 0x3A else {
            return .malformedField
        }
        let start = ByteClass.end(of: text, from: nameEnd + 1, while: ByteClass.isWhitespace)
        var end = text.count
        while end > start, ByteClass.isWhitespace(text[end - 1]) { end -= 1 }
        let content = text.extracting(start..<end)
        guard ByteClass.end(of: content, while: ByteClass.isFieldContent) == content.count else {
            return .malformedField
        }
        let name = line.lowerBound..<line.lowerBound + nameEnd
        let value = line.lowerBound + start..<line.lowerBound + end
        head.fields.append(RequestHead.FieldPlace(name: name, value: value))
        return notice(name: name, value: value, bytes)
    }

    /// Records the fields that delimit and route the message.
    private mutating func notice(
        name: Range<Int>,
        value: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> RequestFault? {
        let name = bytes.extracting(name)
        switch name.count {
        case 2: if Self.equals(name, "te") { head.flags.insert(.hasConnectionFields) }
        case 3: if Self.equals(name, "via") { head.flags.insert(.hasVia) }
        case 4: if Self.equals(name, "host") { return noticeHost(value, bytes) }
        case 6: if Self.equals(name, "expect") { noticeExpect(value, bytes) }
        case 7:
            if Self.equals(name, "upgrade") || Self.equals(name, "trailer") {
                head.flags.insert(.hasConnectionFields)
            }
        case 8: if Self.equals(name, "cdn-loop") { head.flags.insert(.hasVia) }
        case 10:
            if Self.equals(name, "connection") {
                head.flags.insert(.hasConnectionFields)
                noticeConnection(value, bytes)
            } else if Self.equals(name, "keep-alive") {
                head.flags.insert(.hasConnectionFields)
            }
        case 14:
            if Self.equals(name, "content-length") { return noticeLength(value, bytes) }
            if Self.equals(name, "http2-settings") { head.flags.insert(.hasConnectionFields) }
        case 16, 19:
            if Self.equals(name, "proxy-connection") || Self.equals(name, "proxy-authorization") {
                head.flags.insert(.hasConnectionFields)
            }
        case 17:
            if Self.equals(name, "transfer-encoding") { return noticeCoding(value, bytes) }
        default: break
        }
        return nil
    }

    private mutating func noticeHost(
        _ value: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> RequestFault? {
        guard head.host == nil || Mutant.takesTwoHosts.isOn else { return .hostRepeated }
        let text = bytes.extracting(value)
        guard ByteClass.end(of: text, while: ByteClass.isAuthority) == text.count else {
            return .malformedHost
        }
        head.host = value
        return nil
    }

    /// Accepts one line of digits; lists, signs and second lines are used to smuggle requests.
    private mutating func noticeLength(
        _ value: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> RequestFault? {
        if Mutant.takesTwoLengths.isOn { head.flags.remove(.hasContentLength) }
        guard head.flags.insert(.hasContentLength).inserted else { return .contentLengthRepeated }
        // 18 digits are below 2^63.
        guard !value.isEmpty, value.count <= 18 else { return .contentLengthInvalid }
        var length = 0
        for place in value {
            guard ByteClass.isDigit(bytes[place]) else { return .contentLengthInvalid }
            length = length * 10 + Int(bytes[place] - 0x30)
        }
        head.framing = .length(length)
        return nil
    }

    private mutating func noticeCoding(
        _ value: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> RequestFault? {
        head.flags.insert(.hasConnectionFields)
        guard head.flags.insert(.hasTransferEncoding).inserted else {
            return .transferEncodingRepeated
        }
        guard Self.equals(bytes.extracting(value), "chunked") else {
            return .transferCodingUnknown
        }
        return nil
    }

    private mutating func noticeExpect(_ value: Range<Int>, _ bytes: Span<UInt8>) {
        let text = bytes.extracting(value)
        head.flags.insert(Self.equals(text, "100-continue") ? .expectsContinue : .expectsElse)
    }

    private mutating func noticeConnection(_ value: Range<Int>, _ bytes: Span<UInt8>) {
        bytes.extracting(value).withUnsafeBytes { value in
            var members = ListScanner(ByteRun(value))
            while let member = members.next() {
                if member.equals(lowercased: "close") {
                    head.flags.insert(.wantsClose)
                } else if member.equals(lowercased: "keep-alive") {
                    head.flags.insert(.wantsKeepAlive)
                } else {
                    head.flags.insert(.listsFields)
                    head.listedCount += 1
                }
            }
        }
    }

    /// Checks the rules about the whole head (RFC 9112 §3.2 and §6.3).
    private mutating func finish(_ limits: WireLimits) -> RequestFault? {
        // Each listed name is kept to find its field, and more fields cannot be there.
        if head.listedCount > limits.fieldCountMax { return .fieldsTooMany }
        let isOld = head.flags.contains(.isOldVersion)
        if head.host == nil, !isOld { return .hostMissing }
        if head.flags.contains(.hasTransferEncoding) {
            if Mutant.takesLengthBesideCoding.isOn { head.flags.remove(.hasContentLength) }
            if head.flags.contains(.hasContentLength) { return .lengthAndTransferEncoding }
            if isOld { return .transferEncodingInOldVersion }
            head.framing = .chunked
        }
        return head.flags.contains(.expectsElse) && !isOld ? .expectationUnknown : nil
    }

    /// Whether `text` equals the lower-case `literal`, ignoring case.
    @inline(__always)
    static func equals(_ text: UnsafeRawBufferPointer, _ literal: StaticString) -> Bool {
        ByteRun(text).equals(lowercased: literal)
    }

    /// Whether `text` equals the lower-case `literal`, ignoring case.
    @inline(__always)
    static func equals(_ text: Span<UInt8>, _ literal: StaticString) -> Bool {
        text.count == literal.utf8CodeUnitCount && text.withUnsafeBytes { equals($0, literal) }
    }
}
