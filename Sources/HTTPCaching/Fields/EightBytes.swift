/// Tests and changes on eight bytes at a time.
///
/// The parsers and rules compare and check the names and values of every head
/// (`perf/log/0075-the-slow-path.md`). `TargetURL` and `EntryTable`, which every hit uses, have steps
/// of their own: a call into another target is not inlined.
extension UInt64 {
    private static let highBits: UInt64 = 0x8080_8080_8080_8080
    private static let ones: UInt64 = 0x0101_0101_0101_0101

    /// The bytes with ASCII letters in lower case.
    @inline(__always)
    var lowercasedBytes: UInt64 {
        let low = self & ~Self.highBits
        // The high bit of a byte is set from `A` on, and from the character after `Z` on.
        let fromA = low &+ Self.ones &* (0x80 - 0x41)
        let afterZ = low &+ Self.ones &* (0x80 - 0x5B)
        let isUppercase = (fromA ^ afterZ) & ~self & Self.highBits
        return self | isUppercase >> 2
    }

    /// Whether the bytes equal those of `lowercased` when ASCII case is ignored.
    ///
    /// Of the bytes from 0x40 on, `lowercased` has only lower-case letters.
    @inline(__always)
    func equals(lowercased: UInt64) -> Bool {
        // Bit 0x20 may differ in a letter, which has bit 0x40.
        let mayDiffer = (lowercased >> 1) & (Self.ones &* 0x20)
        return (self ^ lowercased) & ~mayDiffer == 0
    }

    /// Whether all bytes are letters or hyphens, as in most names of fields.
    @inline(__always)
    var areLettersOrHyphens: Bool {
        let lower = self | Self.ones &* 0x20
        let low = lower & ~Self.highBits
        // The high bit of a byte is set from `a` on, and from the character after `z` on.
        let fromA = low &+ Self.ones &* (0x80 - 0x61)
        let afterZ = low &+ Self.ones &* (0x80 - 0x7B)
        let isLetter = (fromA ^ afterZ) & ~self
        // 0 for a hyphen; the addition then leaves the high bit clear.
        let hyphen = self ^ Self.ones &* 0x2D
        let isOther = (hyphen & ~Self.highBits) &+ ~Self.highBits | hyphen
        return (isLetter | ~isOther) & Self.highBits == Self.highBits
    }

    /// Whether a byte is a control character, a tab among them.
    @inline(__always)
    var hasControl: Bool { hasByte(below: 0x20) || contains(0x7F) }

    /// Whether a byte is a space or a control character.
    @inline(__always)
    var hasControlOrSpace: Bool { hasByte(below: 0x21) || contains(0x7F) }

    @inline(__always)
    func contains(_ byte: UInt8) -> Bool {
        (self ^ Self.ones &* UInt64(byte)).hasByte(below: 1)
    }

    /// The place of the first byte in memory that equals `byte`.
    @inline(__always)
    func place(of byte: UInt8) -> Int? {
        let marks = (littleEndian ^ Self.ones &* UInt64(byte)).marks(below: 1)
        return marks == 0 ? nil : marks.trailingZeroBitCount / 8
    }

    /// Whether a byte is less than `limit`, which is at most 0x80.
    @inline(__always)
    private func hasByte(below limit: UInt64) -> Bool { marks(below: limit) != 0 }

    /// The high bit of the lowest byte that is less than `limit`, perhaps with higher ones.
    @inline(__always)
    private func marks(below limit: UInt64) -> UInt64 {
        // The subtraction may borrow from the next byte, but only if this one is small: so the lowest
        // bit tells which byte it is, and the others tell nothing.
        (self &- Self.ones &* limit) & ~self & Self.highBits
    }
}
