import Testing

@testable import HTTPCaching

/// Bytes are compared and checked eight at a time; every byte must count at every place.
@Suite("Runs of bytes")
struct ByteRunTests {
    /// The lengths around one and two words, and those of the shorter steps.
    private static let lengths = Array(0...17) + [24, 31]

    private static func lower(_ byte: UInt8) -> UInt8 {
        (0x41...0x5A).contains(byte) ? byte + 0x20 : byte
    }

    @Test("Every pair of bytes", arguments: [1, 5, 8, 13])
    func pairs(length: Int) {
        for first in UInt8.min...UInt8.max {
            for second in UInt8.min...UInt8.max {
                // Neighbours that a carry between bytes would change.
                var (left, right) = (
                    [UInt8](repeating: 0xFF, count: length),
                    [UInt8](repeating: 0xFF, count: length)
                )
                let place = Int(first) % length
                (left[place], right[place]) = (first, second)
                left.withByteRun { left in
                    right.withByteRun { right in
                        #expect(left.equals(right) == (first == second))
                        let isSame = Self.lower(first) == Self.lower(second)
                        #expect(left.equalsIgnoringCase(right) == isSame)
                    }
                }
            }
        }
    }

    @Test("A difference at any place of any length", arguments: lengths)
    func places(length: Int) {
        let plain = (0..<length).map { UInt8(ascii: "a") + UInt8($0 % 26) }
        let capitals = plain.map { $0 - 0x20 }
        plain.withByteRun { plain in
            capitals.withByteRun {
                #expect(plain.equalsIgnoringCase($0))
                #expect(plain.equals($0) == (length == 0))
            }
        }
        for place in 0..<length {
            var other = plain
            other[place] = UInt8(ascii: "0")
            other.withByteRun { other in
                plain.withByteRun {
                    #expect(!$0.equalsIgnoringCase(other))
                    #expect(!$0.equals(other))
                }
            }
            plain.dropLast(length - place).withUnsafeBytes { shorter in
                plain.withByteRun { #expect(!$0.equalsIgnoringCase(ByteRun(shorter))) }
            }
        }
    }

    @Test("The first of several equal bytes is found, whatever follows it", arguments: lengths)
    func firstOfSeveral(length: Int) {
        for place in 0..<length {
            for byte in UInt8.min...UInt8.max {
                // The neighbours that a borrow between bytes would change.
                for follower in [byte, byte ^ 1, byte ^ 0x80] {
                    var text = [UInt8](repeating: byte ^ 0x80, count: place)
                    text.append(byte)
                    text.append(contentsOf: repeatElement(follower, count: length - place - 1))
                    text.withByteRun { #expect($0.index(of: byte) == place) }
                }
            }
        }
    }

    @Test("Every byte in place of each one of a literal")
    func literals() {
        let literals: [StaticString] = [
            "te", "host", "cdn-loop", "abcdefghijklmnopqrstuvwxyz-0123456789/",
        ]
        for literal in literals {
            let bytes = literal.withUTF8Buffer { Array($0) }
            for place in bytes.indices {
                for byte in UInt8.min...UInt8.max {
                    var text = bytes
                    text[place] = byte
                    let isSame = Self.lower(byte) == bytes[place]
                    text.withByteRun { #expect($0.equals(lowercased: literal) == isSame) }
                    text.append(byte)
                    text.withByteRun { #expect($0.hasPrefix(lowercased: literal) == isSame) }
                }
            }
        }
    }

    @Test("Every byte in a value and in a name", arguments: lengths.dropFirst())
    func classes(length: Int) {
        for byte in UInt8.min...UInt8.max {
            for place in 0..<length {
                for filling: UInt8 in [0x61, 0xFF] {
                    var value = [UInt8](repeating: filling, count: length)
                    value[place] = byte
                    let isAtEdge = place == 0 || place == length - 1
                    let isWanted =
                        byte >= 0x21 && byte != 0x7F
                        || (byte == 0x20 || byte == 0x09) && !isAtEdge
                    value.withByteRun {
                        #expect(FieldSection.isValidValue($0) == isWanted)
                        #expect($0.isVisible == (byte >= 0x21 && byte != 0x7F))
                        #expect($0.index(of: byte) == (byte == filling ? 0 : place))
                    }
                }
                var name = [UInt8](repeating: 0x61, count: length)
                name[place] = byte
                let isToken =
                    byte < 0x80 && byte > 0x20 && byte != 0x7F
                    && !"\"(),/:;<=>?@[\\]{}".utf8.contains(byte)
                name.withByteRun { #expect(FieldSection.isValidName($0) == isToken) }
            }
        }
    }
}
