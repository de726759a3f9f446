import Platform

/// The character classes of RFC 9112 that the parsers test for every byte, and the end of a line.
///
/// They are written here, not imported from the rules, so that they are inlined in the parser's
/// loops: a call across the target boundary for every byte would cost more than the parsing.
enum ByteClass {
    /// The place of the first line feed from `start` on.
    @inline(__always) static func lineFeed(
        in bytes: Span<UInt8>,
        from start: Int
    ) -> Int? {
        guard start < bytes.count else { return nil }
        return place(of: 0x0A, in: bytes, start..<bytes.count)
    }

    /// The next line feed from `scanned` on; without one, the bytes so far need no second look.
    @inline(__always) static func nextLineFeed(
        in bytes: Span<UInt8>,
        scanned: inout Int
    ) -> Int? {
        let found = lineFeed(in: bytes, from: scanned)
        if found == nil { scanned = bytes.count }
        return found
    }

    /// The first place of a byte within a range.
    @inline(__always) static func place(
        of byte: UInt8,
        in bytes: Span<UInt8>,
        _ range: Range<Int>
    ) -> Int? {
        bytes.extracting(range).withUnsafeBytes { part in
            guard let base = part.baseAddress,
                let found = memchr(base, Int32(byte), part.count)
            else { return nil }
            return range.lowerBound + (UnsafeRawPointer(found) - base)
        }
    }

    /// The place of the first byte that `isIn` refuses, or the end.
    @inline(__always) static func end(
        of bytes: Span<UInt8>,
        from start: Int = 0,
        while isIn: (UInt8) -> Bool
    ) -> Int {
        var place = start
        while place < bytes.count, isIn(bytes[place]) { place += 1 }
        return place
    }

    /// RFC 9110 §5.6.2 `tchar`.
    @inline(__always) static func isToken(_ byte: UInt8) -> Bool {
        // One bit for each ASCII character: 0-9 ! # $ % & ' * + - . and A-Z a-z ^ _ ` | ~
        let low: UInt64 = 0x03FF_6CFA_0000_0000
        let high: UInt64 = 0x57FF_FFFF_C7FF_FFFE
        if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
        return byte < 128 && (high >> UInt64(byte - 64)) & 1 == 1
    }

    /// The letters, digits and the hyphen: names of these alone look the same to every program.
    @inline(__always) static func isPlainName(_ byte: UInt8) -> Bool {
        isDigit(byte) || (0x61...0x7A).contains(byte | 0x20) || byte == 0x2D
    }

    /// RFC 9110 §5.5 `field-content` with whitespace: no control character but the tab.
    @inline(__always) static func isFieldContent(_ byte: UInt8) -> Bool {
        (byte >= 0x20 && byte != 0x7F) || byte == 0x09
    }

    /// The bytes of a request target: visible ASCII without `#` (RFC 9112 §3.2).
    @inline(__always) static func isTarget(_ byte: UInt8) -> Bool {
        byte > 0x20 && byte < 0x7F && byte != 0x23
    }

    @inline(__always) static func isWhitespace(_ byte: UInt8) -> Bool {
        byte == 0x20 || byte == 0x09
    }

    @inline(__always) static func isDigit(_ byte: UInt8) -> Bool { byte >= 0x30 && byte <= 0x39 }

    /// RFC 3986 §3.2 without user information: the bytes of a host and its port.
    @inline(__always) static func isAuthority(_ byte: UInt8) -> Bool {
        // One bit for each ASCII character: ! $ % & ' ( ) * + , - . 0-9 : ; = and A-Z [ ] _ a-z ~
        let low: UInt64 = 0x2FFF_7FF2_0000_0000
        let high: UInt64 = 0x47FF_FFFE_AFFF_FFFE
        if byte < 64 { return (low >> UInt64(byte)) & 1 == 1 }
        return byte < 128 && (high >> UInt64(byte - 64)) & 1 == 1
    }
}
