/// The place that a machine has reached in the log: every entry up to it is applied.
struct Bookmark: Hashable, Sendable {
    var incarnation: FleetPurge.ID
    var position: FleetPosition
    /// The purge at that position; `nil` before the first one, or if it could not be read.
    var id: FleetPurge.ID?
}

extension Bookmark {
    private static let version = "ce1"

    /// One line of text with a checksum.
    var encoded: [UInt8] {
        let words = [
            Self.version, Self.hex(incarnation.bytes), position.description,
            id.map { Self.hex($0.bytes) } ?? "-",
        ]
        let line = words.joined(separator: " ")
        return Array("\(line) \(Self.checksum(line))\n".utf8)
    }

    /// Reads a line that `encoded` wrote; `nil` for any other.
    init?(_ bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self), text.last == "\n" else {
            return nil
        }
        let words = text.dropLast().split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 5, words[0] == Self.version,
            words[4] == Self.checksum(words[..<4].joined(separator: " ")),
            let incarnation = Self.bytes(words[1]).flatMap({ FleetPurge.ID($0) }),
            let position = FleetPosition(words[2])
        else { return nil }
        let id = words[3] == "-" ? nil : Self.bytes(words[3]).flatMap { FleetPurge.ID($0) }
        guard words[3] == "-" || id != nil else { return nil }
        self.init(incarnation: incarnation, position: position, id: id)
    }

    /// FNV-1a (http://www.isthe.com/chongo/tech/comp/fnv/), against torn and damaged files.
    private static func checksum(_ text: String) -> String {
        let sum = text.utf8.reduce(UInt64(0xCBF2_9CE4_8422_2325)) { sum, byte in
            (sum ^ UInt64(byte)) &* 0x100_0000_01B3
        }
        return String(sum, radix: 16)
    }

    static func hex(_ bytes: [UInt8]) -> String {
        bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    static func bytes(_ text: Substring) -> [UInt8]? {
        let digits = text.compactMap { $0.isASCII ? $0.hexDigitValue : nil }
        guard digits.count == text.utf8.count, digits.count.isMultiple(of: 2) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).map {
            UInt8(digits[$0] << 4 | digits[$0 + 1])
        }
    }
}
