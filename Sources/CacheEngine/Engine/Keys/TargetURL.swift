/// Reads an absolute URL and writes it in the one form that keys use.
///
/// Only URLs that RFC 3986 §6.2.2 and RFC 9110 §4.2.3 call equivalent become equal: scheme and host
/// in lower case, no default port, no fragment, `/` for an empty path. Path and query are not
/// changed: an origin may distinguish any difference there.
struct TargetURL {
    enum Scheme: Hashable {
        case http, https, other
    }

    /// The bytes that `write` needs for a URL of `count` bytes.
    static func writtenBytesMax(_ count: Int) -> Int { count + 1 }

    let scheme: Scheme
    /// The end of the written URL.
    let end: Int

    /// Writes the URL at `offset`; returns `nil` if it is not absolute, or has invalid bytes.
    init?(
        _ url: UnsafeRawBufferPointer,
        writingTo target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) {
        if let copied = Self.copyNormal(url, to: target, at: offset) {
            self = copied
            return
        }
        guard let colon = Self.writeScheme(of: url, to: target, at: offset) else { return nil }
        let authorityStart = colon + 3
        guard url.count > authorityStart, url[colon + 1] == Self.slash, url[colon + 2] == Self.slash
        else { return nil }
        scheme = Self.scheme(in: target, at: offset, count: colon)
        target.copy(.init(rebasing: url[colon..<authorityStart]), at: offset + colon)

        let authorityEnd = Self.authorityEnd(url, from: authorityStart)
        guard
            var written = Self.writeAuthority(
                of: url,
                in: authorityStart..<authorityEnd,
                to: target,
                at: offset + authorityStart,
                scheme
            )
        else { return nil }

        let hasPath = authorityEnd < url.count && url[authorityEnd] == Self.slash
        if !hasPath {
            target[written] = Self.slash
            written += 1
        }
        guard let rest = Self.restEnd(url, from: authorityEnd) else { return nil }
        target.copy(.init(rebasing: url[authorityEnd..<rest]), at: written)
        end = written + rest - authorityEnd
    }

    private init(scheme: Scheme, end: Int) {
        self.scheme = scheme
        self.end = end
    }

    private static let slash = UInt8(ascii: "/")
    private static let schemeBytesMax = 32

    /// Copies a URL that is already in its normal form, as most are; returns `nil` if the URL must
    /// be parsed.
    private static func copyNormal(
        _ url: UnsafeRawBufferPointer,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) -> TargetURL? {
        guard url.count > 8 else { return nil }
        let front: UInt64 = url.littleEndian(at: 0)
        let isSecure = front == 0x2F2F_3A73_7074_7468  // "https://"
        guard isSecure || front << 8 == 0x2F2F_3A70_7474_6800 else { return nil }  // "http://"
        let hostStart = isSecure ? 8 : 7
        var index = hostEnd(url, from: hostStart)
        guard index > hostStart, index < url.count else { return nil }
        if url[index] == UInt8(ascii: ":") {
            let portStart = index
            repeat { index += 1 } while index < url.count && isDigit(url[index])
            let port = UnsafeRawBufferPointer(rebasing: url[portStart..<index])
            guard isPort(port), !isDefault(port, isSecure ? .https : .http), index < url.count
            else { return nil }
        }
        guard url[index] == slash, let end = restEnd(url, from: index) else { return nil }
        target.copy(UnsafeRawBufferPointer(rebasing: url[..<end]), at: offset)
        return TargetURL(scheme: isSecure ? .https : .http, end: offset + end)
    }

    /// The position of the first byte for which `isHostByte` is false.
    private static func hostEnd(_ url: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while url.count - index >= 8 {
            let others = otherThanHostBytes(url.littleEndian(at: index))
            guard others == 0 else { return index + others.trailingZeroBitCount / 8 }
            index += 8
        }
        while index < url.count, isHostByte(url[index]) { index += 1 }
        return index
    }

    /// The top bit of each byte of `word` that may not stand in a host in its normal form.
    private static func otherThanHostBytes(_ word: UInt64) -> UInt64 {
        // Without their top bits no sum of two bytes spills into the next.
        let ascii = word & ~tops
        func bytes(from low: UInt8, through high: UInt8) -> UInt64 {
            let reachesLow = ascii &+ ones &* UInt64(0x80 - low)
            let passesHigh = ascii &+ ones &* UInt64(0x7F - high)
            return reachesLow & ~passesHigh
        }
        let letters = bytes(from: UInt8(ascii: "a"), through: UInt8(ascii: "z"))
        let digits = bytes(from: UInt8(ascii: "0"), through: UInt8(ascii: "9"))
        let marks = bytes(from: UInt8(ascii: "-"), through: UInt8(ascii: "."))
        return ~(letters | digits | marks) & tops | word & tops
    }

    private static let ones: UInt64 = 0x0101_0101_0101_0101
    private static let tops: UInt64 = 0x8080_8080_8080_8080

    private static func isDigit(_ byte: UInt8) -> Bool { byte &- UInt8(ascii: "0") < 10 }

    /// Whether a byte may stand in a host and stays as it is: `-`, `.`, digits, lower-case letters.
    private static func isHostByte(_ byte: UInt8) -> Bool {
        byte &- UInt8(ascii: "a") < 26 || isDigit(byte) || byte &- UInt8(ascii: "-") < 2
    }

    /// Copies the scheme in lower case; returns the position of the colon after it.
    private static func writeScheme(
        of url: UnsafeRawBufferPointer,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) -> Int? {
        var index = 0
        while index < min(url.count, schemeBytesMax) {
            let byte = url[index]
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): target[offset + index] = byte
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): target[offset + index] = byte | 0x20
            case UInt8(ascii: ":"): return index > 0 ? index : nil
            case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "+"), UInt8(ascii: "-"),
                UInt8(ascii: "."):
                guard index > 0 else { return nil }
                target[offset + index] = byte
            default: return nil
            }
            index += 1
        }
        return nil
    }

    private static func scheme(
        in target: UnsafeMutableRawBufferPointer,
        at offset: Int,
        count: Int
    ) -> Scheme {
        func isEqual(_ name: StaticString) -> Bool {
            guard name.utf8CodeUnitCount == count else { return false }
            for index in 0..<count where target[offset + index] != name.utf8Start[index] {
                return false
            }
            return true
        }
        if isEqual("http") { return .http }
        return isEqual("https") ? .https : .other
    }

    private static func authorityEnd(_ url: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start
        while index < url.count {
            switch url[index] {
            case slash, UInt8(ascii: "?"), UInt8(ascii: "#"): return index
            default: index += 1
            }
        }
        return index
    }

    /// Copies the authority: the host in lower case, without the scheme's own port.
    private static func writeAuthority(
        of url: UnsafeRawBufferPointer,
        in range: Range<Int>,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int,
        _ scheme: Scheme
    ) -> Int? {
        var hostStart = range.lowerBound
        for index in range {
            let byte = url[index]
            guard byte > 0x20, byte != 0x7F else { return nil }
            if byte == UInt8(ascii: "@") { hostStart = index + 1 }
        }
        guard let portStart = hostEnd(url, hostStart..<range.upperBound) else { return nil }
        let keepsPort = !isDefault(.init(rebasing: url[portStart..<range.upperBound]), scheme)
        let end = keepsPort ? range.upperBound : portStart
        for index in range.lowerBound..<end {
            let byte = url[index]
            let isUpper = index >= hostStart && byte >= 0x41 && byte <= 0x5A
            target[offset + index - range.lowerBound] = isUpper ? byte | 0x20 : byte
        }
        return offset + end - range.lowerBound
    }

    /// The end of the host, where the port with its colon begins (RFC 3986 §3.2.2, §3.2.3); `nil`
    /// if the host is missing, or the port has other characters than digits or is too large.
    private static func hostEnd(_ url: UnsafeRawBufferPointer, _ range: Range<Int>) -> Int? {
        var end = range.lowerBound
        if end < range.upperBound, url[end] == UInt8(ascii: "[") {
            while end < range.upperBound, url[end] != UInt8(ascii: "]") { end += 1 }
            end += 1
        } else {
            while end < range.upperBound, url[end] != UInt8(ascii: ":") {
                guard url[end] != UInt8(ascii: "["), url[end] != UInt8(ascii: "]") else {
                    return nil
                }
                end += 1
            }
        }
        guard end > range.lowerBound, end <= range.upperBound else { return nil }
        guard end < range.upperBound else { return end }
        guard url[end] == UInt8(ascii: ":") else { return nil }
        for index in end + 1..<range.upperBound {
            guard isDigit(url[index]) else { return nil }
        }
        return isPort(.init(rebasing: url[end..<range.upperBound])) ? end : nil
    }

    private static let portMax = 65_535

    /// Whether the digits of `port`, which begins with its colon, are those of a port, or missing.
    private static func isPort(_ port: UnsafeRawBufferPointer) -> Bool {
        var number = 0
        for index in 1..<port.count {
            number = number * 10 + Int(port[index] &- UInt8(ascii: "0"))
            guard number <= portMax else { return Mutant.takesAnyPort.isOn }
        }
        return true
    }

    /// Whether `port`, with its colon, is empty or the default of the scheme.
    private static func isDefault(_ port: UnsafeRawBufferPointer, _ scheme: Scheme) -> Bool {
        switch (scheme, port.count) {
        case (_, 1): true
        case (.http, 3): port[1] == UInt8(ascii: "8") && port[2] == UInt8(ascii: "0")
        case (.https, 4):
            port[1] == UInt8(ascii: "4") && port[2] == UInt8(ascii: "4")
                && port[3] == UInt8(ascii: "3")
        default: false
        }
    }

    /// The end of path and query; `nil` if they contain a control character or a space.
    private static func restEnd(_ url: UnsafeRawBufferPointer, from start: Int) -> Int? {
        var index = start
        // Eight bytes at a time, while none of them may be special.
        while url.count - index >= 8 {
            let word = url.loadUnaligned(fromByteOffset: index, as: UInt64.self)
            guard !hasSpecialByte(word) else { break }
            index += 8
        }
        // The last eight overlap with those before, which is cheaper than one byte at a time.
        if url.count - index < 8, url.count >= 8,
            !hasSpecialByte(url.littleEndian(at: url.count - 8))
        {
            return url.count
        }
        while index < url.count {
            let byte = url[index]
            if byte == UInt8(ascii: "#") { return index }
            guard byte > 0x20, byte != 0x7F else { return nil }
            index += 1
        }
        return index
    }

    /// Whether a byte of `word` may be a control character, a space, `#` or 0x7F; may be true
    /// wrongly.
    private static func hasSpecialByte(_ word: UInt64) -> Bool {
        func hasByte(below limit: UInt64, _ word: UInt64) -> UInt64 {
            (word &- ones &* limit) & ~word & tops
        }
        let low = hasByte(below: 0x21, word)
        let hash = hasByte(below: 1, word ^ (ones &* 0x23))
        let delete = hasByte(below: 1, word ^ (ones &* 0x7F))
        return low | hash | delete != 0
    }
}
