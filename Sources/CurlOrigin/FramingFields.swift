internal import CacheEngine

/// The framing of the body as the field lines of a head define it, checked byte by byte.
///
/// libcurl reads the same lines by its own rules. The head is refused if two readers could frame
/// the body differently (RFC 9112 §11.1), or if it names a transfer coding that is not decoded here
/// (§6.1).
struct FramingFields {
    enum Line { case coding, length, other }

    private(set) var fault: String?
    private(set) var isChunked = false
    private(set) var hasLength = false
    private var last = Line.other

    /// Records a line that begins a field; `name` is the part before the colon.
    mutating func note(name: UnsafeRawBufferPointer, value: UnsafeRawBufferPointer) {
        last = Self.line(of: name)
        switch last {
        case .other: return
        case .coding:
            if isChunked { fault = "The origin sent Transfer-Encoding twice" }
            let coding = Self.trimmed(value[...])
            if !Self.equals(coding, "chunked") {
                let text = PlainText.excerpt(UnsafeRawBufferPointer(rebasing: coding))
                fault = "The origin sent a Transfer-Encoding other than chunked: `\(text)`"
            }
            isChunked = true
        case .length:
            hasLength = true
            if value.contains(where: { !Self.isOfAList($0) }) {
                let length = UnsafeRawBufferPointer(rebasing: Self.trimmed(value[...]))
                let text = PlainText.excerpt(length)
                fault = "The origin sent an invalid Content-Length: `\(text)`"
            }
        }
        if name.contains(where: Self.isSpace) {
            fault = "The origin sent a space in the field name `\(PlainText.excerpt(name))`"
        }
    }

    /// Records a line that continues the previous field.
    mutating func noteFold() {
        if last != .other { fault = "The origin folded Content-Length or Transfer-Encoding" }
    }

    private static func line(of name: UnsafeRawBufferPointer) -> Line {
        let name = trimmed(name[...])
        if equals(name, "transfer-encoding") { return .coding }
        return equals(name, "content-length") ? .length : .other
    }

    private static func equals(_ bytes: Slice<UnsafeRawBufferPointer>, _ text: StaticString)
        -> Bool
    {
        guard bytes.count == text.utf8CodeUnitCount else { return false }
        return text.withUTF8Buffer { text in
            zip(bytes, text).allSatisfy { byte, letter in
                byte == letter || (0x41...0x5A).contains(byte) && byte | 0x20 == letter
            }
        }
    }

    /// Whether the byte may be part of a list of lengths; the list itself is checked later.
    private static func isOfAList(_ byte: UInt8) -> Bool {
        (0x30...0x39).contains(byte) || byte == UInt8(ascii: ",") || isSpace(byte)
    }

    private static func isSpace(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }

    private static func trimmed(
        _ bytes: Slice<UnsafeRawBufferPointer>
    ) -> Slice<UnsafeRawBufferPointer> {
        var bytes = bytes
        while let first = bytes.first, isSpace(first) { bytes = bytes.dropFirst() }
        while let last = bytes.last, isSpace(last) { bytes = bytes.dropLast() }
        return bytes
    }
}
