import HTTPCaching
import Platform

/// Parses the heads of a response in HTTP/1.x (RFC 9112) as their bytes arrive.
///
///     statusLine ──line──▶ fields ──empty line, 1xx──▶ statusLine
///          │                 ├──────empty line───────▶ complete
///          └──────fault──────┴───────────────────────▶ refused
///
/// A pure value. Each call gets every byte of the head that has arrived, from the first one on. A
/// line is parsed once; only fields are kept, and lines that are not fields are dropped. A control
/// in a value becomes a space (`FieldSection`). A line may end with LF alone (RFC 9112 §2.2), and a
/// folded line is joined with a space (§5.2). A head with doubtful framing, or with NUL, is refused.
///
/// Invariants:
/// 1. `lineStart <= scanned`, and neither is beyond the bytes given last.
/// 2. `lineStart` is the byte after an LF, or the first one.
/// 3. `pending` lies in the bytes before `lineStart`.
struct ResponseParser: Sendable {
    enum Step: Hashable, Sendable {
        case needsMore
        /// A 1xx ended before this offset; `head` is that 1xx until the next call.
        ///
        /// The next head starts there, and the next call gets the bytes from there on.
        case interim(end: Int)
        /// The head of the response ends before this offset.
        case complete(Int)
        case refused(ResponseFault)
    }

    /// A field line whose end is unknown, because the next line may continue it.
    private struct Pending {
        var name: Range<Int>
        var value: Range<Int>
    }

    private let isHead: Bool
    private var isInFields = false
    private var lineStart = 0
    private var scanned = 0
    private var lineCount = 0
    /// Bytes of all heads so far.
    private var lineBytes = 0
    private var interimCount = 0
    private var pending: Pending?
    /// The value of `pending` if it is folded, and empty otherwise.
    private var folded: [UInt8] = []
    private var framing = MessageFraming()
    private(set) var head = UpstreamHead()

    /// Creates a parser; `isHead` says that the request was a HEAD, whose response has no body.
    init(isHead: Bool) { self.isHead = isHead }

    /// Moves the head out after it has ended.
    mutating func takeHead() -> UpstreamHead {
        var taken = UpstreamHead()
        swap(&taken, &head)
        return taken
    }

    /// Parses the new lines in `bytes`.
    mutating func parse(
        _ bytes: Span<UInt8>,
        _ limits: ResponseLimits
    ) -> Step {
        while let lineFeed = ByteClass.nextLineFeed(in: bytes, scanned: &scanned) {
            let hasReturn = lineFeed > lineStart && bytes[lineFeed - 1] == 0x0D
            let line = lineStart..<(hasReturn ? lineFeed - 1 : lineFeed)
            if let fault = accept(line, bytes, limits) { return .refused(fault) }
            scanned = lineFeed + 1
            lineStart = scanned
            if !isInFields {
                if let fault = parseStatusLine(line, bytes) { return .refused(fault) }
                isInFields = true
            } else if !line.isEmpty {
                if let fault = parseField(line, bytes) { return .refused(fault) }
            } else {
                takePending(bytes)
                let hasNUL = ByteClass.place(of: 0, in: bytes, 0..<lineStart) != nil
                return hasNUL ? .refused(.nulInHead) : finish(limits)
            }
        }
        return checkUnfinishedLine(bytes, limits)
    }

    /// Checks what holds for every line.
    private mutating func accept(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>,
        _ limits: ResponseLimits
    ) -> ResponseFault? {
        if !isInFields, let fault = prefixFault(line, bytes, limits) { return fault }
        lineCount += 1
        lineBytes += line.count
        if isTooLarge(lines: lineCount, bytes: lineBytes, limits) { return .headTooLarge }
        guard !line.isEmpty else { return nil }
        return bytes[line.lowerBound] == 0x0D ? .malformedLineEnd : nil
    }

    /// The status line and the empty line are not counted as fields.
    private func isTooLarge(lines: Int, bytes: Int, _ limits: ResponseLimits) -> Bool {
        lines - 2 > limits.fieldCountMax || bytes > limits.headBytesMax
    }

    /// Limits hold for incomplete lines too, so that an attack is not read to its end.
    private func checkUnfinishedLine(
        _ bytes: Span<UInt8>,
        _ limits: ResponseLimits
    ) -> Step {
        var line = lineStart..<bytes.count
        guard !line.isEmpty else { return .needsMore }
        if !isInFields, let fault = prefixFault(line, bytes, limits) { return .refused(fault) }
        // The CR of a line end is not counted.
        if bytes[bytes.count - 1] == 0x0D { line = lineStart..<bytes.count - 1 }
        return isTooLarge(lines: lineCount + 1, bytes: lineBytes + line.count, limits)
            ? .refused(.headTooLarge) : .needsMore
    }
}

// MARK: - The status line (RFC 9112 §4)

extension ResponseParser {
    /// Another protocol is refused at its first bytes, which may never become a line.
    ///
    /// The first byte beyond the size of a head is the last one that is compared, so that the fault
    /// does not depend on the pieces in which the bytes arrive.
    private func prefixFault(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>,
        _ limits: ResponseLimits
    ) -> ResponseFault? {
        let name: StaticString = "HTTP/"
        let room = limits.headBytesMax - lineBytes
        let count = min(line.count, name.utf8CodeUnitCount)
        for place in 0..<count where place <= room {
            guard bytes[line.lowerBound + place] == name.utf8Start[place] else {
                return .malformedStatusLine
            }
        }
        return nil
    }

    /// Parses a line such as `HTTP/1.1 200 OK`; any three digits from 100 on are a status.
    private mutating func parseStatusLine(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> ResponseFault? {
        let line = bytes.extracting(line)
        guard line.count > 5, ByteClass.isDigit(line[5]) else { return .malformedStatusLine }
        guard line[5] == 0x31, line.count > 7, line[6] == 0x2E, ByteClass.isDigit(line[7]) else {
            return .versionUnknown
        }
        guard line.count >= 12, line[8] == 0x20, line.count == 12 || !ByteClass.isDigit(line[12])
        else { return .malformedStatusLine }
        var status = 0
        for place in 9..<12 {
            guard ByteClass.isDigit(line[place]) else { return .malformedStatusLine }
            status = status * 10 + Int(line[place] - 0x30)
        }
        guard status >= 100 else { return .malformedStatusLine }
        head = UpstreamHead()
        head.status = status
        head.isOldVersion = line[7] == 0x30
        framing = MessageFraming()
        head.section.reserveCapacity(min(bytes.count + Self.spareBytes, Self.reservedBytesMax))
        return nil
    }

    /// The maximum capacity that is reserved before any field is parsed; most heads are shorter.
    private static let reservedBytesMax = 1024
    /// The section needs up to four bytes more for a line than the message.
    private static let spareBytes = 128
}

// MARK: - Field lines (RFC 9112 §5)

extension ResponseParser {
    private mutating func parseField(
        _ line: Range<Int>,
        _ bytes: Span<UInt8>
    ) -> ResponseFault? {
        if ByteClass.isWhitespace(bytes[line.lowerBound]) {
            // RFC 9112 §2.2: nothing precedes that the line could continue.
            if lineCount == 2 { return .firstFieldFolded }
            continuePending(line, bytes)
            return nil
        }
        takePending(bytes)
        guard let colon = ByteClass.place(of: 0x3A, in: bytes, line) else { return nil }
        var start = colon + 1
        // The usual space, so that the value need not be trimmed.
        if start < line.upperBound, bytes[start] == 0x20 { start += 1 }
        let field = Pending(name: line.lowerBound..<colon, value: start..<line.upperBound)
        // A fault is kept by the framing, and refused at the end of the head.
        _ = bytes.extracting(field.name).withUnsafeBytes { name in
            bytes.extracting(field.value).withUnsafeBytes { framing.note(name: name, value: $0) }
        }
        pending = field
        return nil
    }

    private mutating func continuePending(_ line: Range<Int>, _ bytes: Span<UInt8>) {
        _ = framing.noteFold()
        guard let pending else { return }
        if folded.isEmpty {
            bytes.extracting(pending.value).withUnsafeBytes { folded.append(contentsOf: $0) }
        }
        folded.append(0x20)
        bytes.extracting(line).withUnsafeBytes {
            folded.append(contentsOf: ByteRun($0).trimmed.buffer)
        }
    }

    /// Appends the pending field to the section, which drops one whose name is not a token.
    private mutating func takePending(_ bytes: Span<UInt8>) {
        guard let field = pending.take() else { return }
        bytes.extracting(field.name).withUnsafeBytes { name in
            let name = ByteRun(name).trimmed
            if folded.isEmpty {
                bytes.extracting(field.value).withUnsafeBytes { append(name, ByteRun($0)) }
            } else {
                var value: [UInt8] = []
                swap(&value, &folded)
                value.withUnsafeBytes { append(name, ByteRun($0)) }
            }
        }
    }

    private mutating func append(_ name: ByteRun, _ value: ByteRun) {
        let isConnection = name.count == 10 && name.equals(lowercased: "connection")
        if isConnection, !namesFields(value) { return }
        head.section.append(name: name, cleaning: value)
    }

    /// Notes the options of `Connection`, and returns whether it also names fields.
    ///
    /// A line that names none concerns this connection alone.
    private mutating func namesFields(_ value: ByteRun) -> Bool {
        var hasNames = false
        var members = ListScanner(value)
        while let member = members.next() {
            if member.equals(lowercased: "close") {
                head.wantsClose = true
            } else if member.equals(lowercased: "keep-alive") {
                head.wantsKeepAlive = true
            } else {
                hasNames = true
            }
        }
        return hasNames
    }
}

// MARK: - The whole head (RFC 9112 §6.3)

extension ResponseParser {
    private mutating func finish(_ limits: ResponseLimits) -> Step {
        let end = lineStart
        isInFields = false
        lineStart = 0
        scanned = 0
        lineCount = 0
        if head.status < 200 {
            interimCount += 1
            guard head.status != 101, interimCount <= limits.interimCountMax else {
                return .refused(.interimRefused)
            }
            return .interim(end: end)
        }
        if let fault = frame() { return .refused(fault) }
        return .complete(end)
    }

    private mutating func frame() -> ResponseFault? {
        let hasBody = MessageFraming.hasBody(status: head.status, isHead: isHead)
        switch framing.verdict(isOldVersion: head.isOldVersion) {
        case .refused(let fault): return ResponseFault(fault)
        case .chunked(let hasLength):
            head.isFramedTwice = hasLength
            if hasLength, !Mutant.keepsOriginLengthBesideCoding.isOn {
                head.section.remove(lowercased: "content-length")
            }
            if hasBody { head.framing = .chunked }
        case .length(let length, let isPlain):
            if !isPlain { head.section.set("Content-Length", String(length)) }
            if hasBody { head.framing = .length(length) }
        case .untilClose:
            if hasBody { head.framing = .untilClose }
        }
        return nil
    }
}
