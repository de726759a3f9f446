internal import CacheEngine
internal import HTTPCaching

/// Parses response heads from the lines that libcurl delivers one by one.
///
///     idle ──status line──▶ inHead ──empty line, 1xx──▶ idle
///                             └─────empty line──────▶ inBody   (later lines are trailers)
///
/// Lines that are not fields, and fields that no message may contain, are dropped, as RFC 9112 §5
/// allows. A head with doubtful framing is refused.
struct HeadParser {
    enum Event {
        case none
        case informational(ResponseHead)
        case final(ResponseHead)
        case refused(CacheError)
    }

    private enum Place { case idle, inHead, inBody }

    private let limits: CurlConfiguration.Limits
    private let isBodyless: Bool
    private var place = Place.idle
    private var status = 0
    private var section = FieldSection()
    private var framing = FramingFields()
    private var isVersion10 = false
    private var name: [UInt8] = []
    private var value: [UInt8] = []
    private var lineCount = 0
    private var byteCount = 0
    private var informationalCount = 0

    /// Creates a parser; `isBodyless` means the request was a HEAD, whose response has no body.
    init(limits: CurlConfiguration.Limits, isBodyless: Bool) {
        self.limits = limits
        self.isBodyless = isBodyless
    }

    var isInBody: Bool { place == .inBody }

    mutating func consume(_ line: UnsafeRawBufferPointer) -> Event {
        let line = Self.withoutLineEnd(line)
        lineCount += 1
        byteCount += line.count
        guard lineCount <= limits.maximumFields + 2, byteCount <= limits.maximumHeadSize.bytes
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
            framing.noteFold()
            value.append(UInt8(ascii: " "))
            value.append(contentsOf: Self.trimmed(line))
            return .none
        }
        takePendingLine()
        if let colon = line.firstIndex(of: UInt8(ascii: ":")) {
            let rest = UnsafeRawBufferPointer(rebasing: line[(colon + 1)...])
            framing.note(name: .init(rebasing: line[..<colon]), value: rest)
            name.append(contentsOf: Self.trimmed(.init(rebasing: line[..<colon])))
            value.append(contentsOf: rest)
        }
        return .none
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
        framing = FramingFields()
        isVersion10 = line.starts(with: "HTTP/1.0".utf8)
        lineCount = 1
        byteCount = line.count
        place = .inHead
        return .none
    }

    private mutating func end() -> Event {
        takePendingLine()
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
        lineCount = 0
        byteCount = 0
        head.hasContent = !isBodyless && status != 204 && status != 304
        if let fault = framing.fault { return .refused(Self.misbehaved(fault)) }
        if framing.isChunked {
            // HTTP/1.0 has no transfer codings, so a message with one is faulty (RFC 9112 §6.1).
            guard !isVersion10 else {
                return .refused(
                    Self.misbehaved("The origin sent Transfer-Encoding in an HTTP/1.0 response")
                )
            }
            // The coding frames the body, whatever the length field says (RFC 9112 §6.3).
            head.isFramedTwice = framing.hasLength
            if !Mutant.keepsLengthBesideCoding.isOn { head.fields.remove("Content-Length") }
            return .final(head)
        }
        guard let lengths = head.fields["Content-Length"] else { return .final(head) }
        guard let length = Self.length(lengths) else {
            return .refused(
                Self.misbehaved(
                    "The origin sent an invalid Content-Length: `\(PlainText.excerpt(lengths))`"
                )
            )
        }
        head.fields["Content-Length"] = String(length)
        if head.hasContent { head.contentBytes = length }
        return .final(head)
    }

    private mutating func takePendingLine() {
        if !name.isEmpty {
            _ = name.withUnsafeBytes { name in
                value.withUnsafeBytes { section.append(nameBytes: name, valueBytes: $0) }
            }
        }
        name.removeAll(keepingCapacity: true)
        value.removeAll(keepingCapacity: true)
    }

    /// Returns the length that all members of the list share (RFC 9110 §8.6); `nil` if they differ.
    private static func length(_ list: String) -> Int? {
        var agreed: Int?
        for member in list.split(separator: ",", omittingEmptySubsequences: false) {
            if Mutant.takesTheLastLength.isOn { agreed = nil }
            let digits = member.drop { $0 == " " }.utf8
            guard !digits.isEmpty, digits.allSatisfy({ (0x30...0x39).contains($0) }),
                let length = Int(String(member.drop { $0 == " " })), agreed ?? length == length
            else { return nil }
            agreed = length
        }
        return agreed
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

    private static func trimmed(_ bytes: UnsafeRawBufferPointer) -> Slice<UnsafeRawBufferPointer> {
        let isSpace = { (byte: UInt8) in byte == 0x20 || byte == 0x09 }
        var slice = bytes[...]
        while let first = slice.first, isSpace(first) { slice = slice.dropFirst() }
        while let last = slice.last, isSpace(last) { slice = slice.dropLast() }
        return slice
    }

    private static func withoutLineEnd(_ line: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer {
        var line = line[...]
        if line.last == 0x0A { line = line.dropLast() }
        if line.last == 0x0D { line = line.dropLast() }
        return UnsafeRawBufferPointer(rebasing: line)
    }

    private static func misbehaved(_ detail: String) -> CacheError {
        CacheError(.originMisbehaved, detail: detail)
    }
}
