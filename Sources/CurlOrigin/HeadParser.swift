internal import CacheEngine
internal import HTTPCaching

/// Parses response heads from the lines that libcurl delivers one by one.
///
///     idle ──status line──▶ inHead ──empty line, 1xx──▶ idle
///                             └─────empty line──────▶ inBody   (later lines are trailers)
///
/// Lines that are not fields are dropped, as RFC 9112 §5 allows. A control in a value becomes a space
/// (`FieldSection`). A head with doubtful framing is refused.
struct HeadParser {
    enum Event {
        case none
        case informational(ResponseHead)
        case final(ResponseHead)
        case refused(CacheError)
    }

    private enum Place { case idle, inHead, inBody }

    private let limits: CurlConfiguration.Limits
    private let isHead: Bool
    private var place = Place.idle
    private var status = 0
    private var section = FieldSection()
    private var framing = MessageFraming()
    /// The error for the last line whose framing is at fault.
    private var framingError: CacheError?
    /// Whether the version is HTTP/1.0.
    private var isOldVersion = false
    /// Whether the connection carries many responses at once.
    private(set) var isMultiplexed = false
    private var name: [UInt8] = []
    private var value: [UInt8] = []
    private var lineCount = 0
    private var byteCount = 0
    private var informationalCount = 0

    /// Creates a parser; `isHead` says that the request was a HEAD, whose response has no body.
    init(limits: CurlConfiguration.Limits, isHead: Bool) {
        self.limits = limits
        self.isHead = isHead
    }

    var isInBody: Bool { place == .inBody }

    mutating func consume(_ line: UnsafeRawBufferPointer) -> Event {
        let line = Self.withoutLineEnd(line)
        lineCount += 1
        byteCount += line.count
        // Two lines are no fields: the status line, and the empty one. The limit may be `Int.max`.
        guard lineCount - 2 <= limits.maximumFields, byteCount <= limits.maximumHeadSize.bytes
        else {
            return .refused(
                Self.misbehaved(
                    "The origin's head or trailer has more than \(limits.maximumFields) fields or "
                        + "\(limits.maximumHeadSize.bytes) bytes"
                )
            )
        }
        if place == .inBody { return .none }
        if place == .idle { return begin(line) }
        if line.isEmpty { return end() }
        guard line[0] != UInt8(ascii: " "), line[0] != UInt8(ascii: "\t") else {
            // A folded line becomes one line with a space for each fold (RFC 9112 §5.2).
            if let fault = framing.noteFold() { framingError = Self.error(fault, "") }
            value.append(UInt8(ascii: " "))
            value.append(contentsOf: ByteRun(line).trimmed.buffer)
            return .none
        }
        takePendingLine()
        if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            beginField(
                UnsafeRawBufferPointer(rebasing: line[..<colon]),
                UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
            )
        }
        return .none
    }

    private mutating func beginField(
        _ nameBytes: UnsafeRawBufferPointer,
        _ valueBytes: UnsafeRawBufferPointer
    ) {
        if let fault = framing.note(name: nameBytes, value: valueBytes) {
            let quoted =
                fault == .spaceBeforeColon ? nameBytes : ByteRun(valueBytes).trimmed.buffer
            framingError = Self.error(fault, PlainText.excerpt(quoted))
        }
        name.append(contentsOf: ByteRun(nameBytes).trimmed.buffer)
        value.append(contentsOf: valueBytes)
    }

    private mutating func begin(_ line: UnsafeRawBufferPointer) -> Event {
        guard let status = Self.status(line) else {
            return .refused(
                Self.misbehaved(
                    "The response does not begin with a status line: `\(PlainText.excerpt(line))`"
                )
            )
        }
        self.status = status
        section = FieldSection()
        framing = MessageFraming()
        framingError = nil
        isOldVersion = line.starts(with: "HTTP/1.0".utf8)
        isMultiplexed = line.starts(with: "HTTP/2".utf8) || line.starts(with: "HTTP/3".utf8)
        place = .inHead
        return .none
    }

    private mutating func end() -> Event {
        takePendingLine()
        lineCount = 0
        var head = ResponseHead(status: status, fields: HeaderFields(section), hasContent: false)
        if status < 200 {
            informationalCount += Mutant.countsNoInterimHeads.isOn ? 0 : 1
            place = .idle
            guard status != 101 else {
                return .refused(Self.misbehaved("The origin sent status 101 without an upgrade"))
            }
            guard informationalCount <= limits.maximumInformational else {
                return .refused(
                    Self.misbehaved(
                        "The origin sent more than \(limits.maximumInformational) 1xx responses"
                    )
                )
            }
            return .informational(head)
        }
        place = .inBody
        byteCount = 0
        head.hasContent = MessageFraming.hasBody(status: status, isHead: isHead)
        switch framing.verdict(isOldVersion: isOldVersion) {
        case .refused(let fault):
            let lengths = head.fields["Content-Length"] ?? ""
            return .refused(framingError ?? Self.error(fault, PlainText.excerpt(lengths)))
        case .chunked(let hasLength):
            head.isFramedTwice = hasLength
            if !Mutant.keepsLengthBesideCoding.isOn { head.fields.remove("Content-Length") }
        case .length(let length, _):
            head.fields["Content-Length"] = String(length)
            if head.hasContent { head.contentBytes = length }
        case .untilClose: break
        }
        return .final(head)
    }

    private mutating func takePendingLine() {
        if !name.isEmpty {
            _ = name.withUnsafeBytes { name in
                value.withUnsafeBytes { section.append(name: ByteRun(name), cleaning: ByteRun($0)) }
            }
        }
        name.removeAll(keepingCapacity: true)
        value.removeAll(keepingCapacity: true)
    }

    /// Returns the status of a line such as `HTTP/1.1 200 OK` or `HTTP/2 200`; any three digits
    /// from 100 on are valid.
    private static func status(_ line: UnsafeRawBufferPointer) -> Int? {
        guard line.starts(with: "HTTP/".utf8), let space = line.firstIndex(of: UInt8(ascii: " "))
        else { return nil }
        let digits = line[(space + 1)...].prefix { (0x30...0x39).contains($0) }
        guard digits.count == 3 else { return nil }
        let status = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        return status >= 100 ? status : nil
    }

    private static func withoutLineEnd(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var line = line[...]
        if line.last == 0x0A { line = line.dropLast() }
        if line.last == 0x0D { line = line.dropLast() }
        return UnsafeRawBufferPointer(rebasing: line)
    }

    /// The error for a fault of the framing; it quotes the value or the name that is at fault.
    private static func error(_ fault: MessageFraming.Fault, _ quoted: String) -> CacheError {
        switch fault {
        case .codingRepeated: misbehaved("The origin sent Transfer-Encoding twice")
        case .codingUnknown:
            misbehaved("The origin sent a Transfer-Encoding other than chunked: `\(quoted)`")
        case .codingInOldVersion:
            misbehaved("The origin sent Transfer-Encoding in an HTTP/1.0 response")
        case .lengthInvalid: misbehaved("The origin sent an invalid Content-Length: `\(quoted)`")
        case .spaceBeforeColon:
            misbehaved("The origin sent a space in the field name `\(quoted)`")
        case .folded: misbehaved("The origin folded Content-Length or Transfer-Encoding")
        }
    }

    private static func misbehaved(_ detail: String) -> CacheError {
        CacheError(.originMisbehaved, detail: detail)
    }
}
