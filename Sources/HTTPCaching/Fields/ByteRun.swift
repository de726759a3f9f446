/// A borrowed run of bytes, valid only while the memory it was made from stays in place.
///
/// Every read is bounds-checked, also in optimised builds: a parser error traps instead of reading
/// foreign memory. The type is not `Sendable` and must not be stored. It is valid only inside the
/// `withUnsafeBytes` closure that made it.
public struct ByteRun {
    public let buffer: UnsafeRawBufferPointer

    @inlinable public init(_ buffer: UnsafeRawBufferPointer) { self.buffer = buffer }

    /// The bytes of a literal, which stay in place for ever.
    public init(_ literal: StaticString) {
        buffer = UnsafeRawBufferPointer(start: literal.utf8Start, count: literal.utf8CodeUnitCount)
    }

    public var count: Int { buffer.count }
    public var isEmpty: Bool { buffer.isEmpty }

    public subscript(index: Int) -> UInt8 {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: buffer.count))
        return buffer[index]
    }

    /// The bytes of `range`, without copying.
    public subscript(range: Range<Int>) -> ByteRun {
        precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count)
        return ByteRun(UnsafeRawBufferPointer(rebasing: buffer[range]))
    }

    /// The run without leading and trailing optional whitespace (RFC 9110 §5.6.3).
    @inline(__always)
    public var trimmed: ByteRun {
        guard !isEmpty, self[0].isOptionalWhitespace || self[count - 1].isOptionalWhitespace else {
            return self
        }
        return trimmedByteByByte
    }

    private var trimmedByteByByte: ByteRun {
        var lower = 0
        var upper = count
        while lower < upper, self[lower].isOptionalWhitespace { lower += 1 }
        while upper > lower, self[upper - 1].isOptionalWhitespace { upper -= 1 }
        return self[lower..<upper]
    }

    /// Whether these bytes equal `lowercased`, a literal in lower case, when ASCII case is ignored.
    ///
    /// The literal is not empty.
    @inline(__always)
    public func equals(lowercased: StaticString) -> Bool {
        // Most names differ in length or in the first letter already.
        count == lowercased.utf8CodeUnitCount
            && self[0] | 0x20 == lowercased.utf8Start.pointee | 0x20
            && hasSameLetters(as: ByteRun(lowercased))
    }

    /// Whether the run begins with `lowercased`, a literal in lower case, when ASCII case is ignored.
    public func hasPrefix(lowercased: StaticString) -> Bool {
        let count = lowercased.utf8CodeUnitCount
        return self.count >= count && self[0..<count].equals(lowercased: lowercased)
    }

    /// Not inlined: every comparison of a name would carry its loop.
    @inline(never)
    private func hasSameLetters(as lowercased: ByteRun) -> Bool {
        hasEqualWords(lowercased) { $0.equals(lowercased: $1) }
    }

    public func equalsIgnoringCase(_ other: ByteRun) -> Bool {
        hasEqualWords(other) { $0.lowercasedBytes == $1.lowercasedBytes }
    }

    public func equals(_ other: ByteRun) -> Bool { hasEqualWords(other) { $0 == $1 } }

    /// Compares with a literal, for case-sensitive names (methods, units).
    public func equals(exactly literal: StaticString) -> Bool {
        equals(ByteRun(literal))
    }

    /// Whether no byte is a space or a control character.
    public var isVisible: Bool {
        if everyWord({ !$0.hasControlOrSpace }) { return true }
        return buffer.allSatisfy { $0 > 0x20 && $0 != 0x7F }
    }

    /// Whether both runs are of one length, and `areEqual` holds for each eight bytes of them.
    @inline(__always)
    private func hasEqualWords(_ other: ByteRun, _ areEqual: (UInt64, UInt64) -> Bool) -> Bool {
        guard count == other.count else { return false }
        guard count >= 8 else { return areEqual(shortWord, other.shortWord) }
        var offset = 0
        while offset < count - 8 {
            guard areEqual(word(at: offset), other.word(at: offset)) else { return false }
            offset += 8
        }
        return areEqual(word(at: count - 8), other.word(at: count - 8))
    }

    /// Whether `isWanted` holds for all bytes, eight at a time; some may be given to it twice.
    ///
    /// `false` for fewer than four bytes.
    @inline(__always)
    func everyWord(_ isWanted: (UInt64) -> Bool) -> Bool {
        guard count >= 8 else { return count >= 4 && isWanted(shortWord) }
        var offset = 0
        while offset < count - 8 {
            guard isWanted(word(at: offset)) else { return false }
            offset += 8
        }
        return isWanted(word(at: count - 8))
    }

    /// The eight bytes from `offset` on, as one number.
    @inline(__always)
    func word(at offset: Int) -> UInt64 {
        precondition(offset >= 0 && offset <= count - 8)
        return buffer.loadUnaligned(fromByteOffset: offset, as: UInt64.self)
    }

    /// All bytes of a run of fewer than eight, as one number; some may be read twice.
    @inline(__always)
    private var shortWord: UInt64 {
        precondition(count < 8)
        if count >= 4 {
            let first = buffer.loadUnaligned(fromByteOffset: 0, as: UInt32.self)
            let last = buffer.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return UInt64(first) | UInt64(last) << 32
        }
        guard count > 0 else { return 0 }
        return UInt64(self[0]) | UInt64(self[count / 2]) << 8 | UInt64(self[count - 1]) << 16
    }

    public var string: String { String(decoding: buffer, as: UTF8.self) }

    public func index(of byte: UInt8, from start: Int = 0) -> Int? {
        var index = start
        while index <= count - 8 {
            if let place = word(at: index).place(of: byte) { return index + place }
            index += 8
        }
        while index < count {
            if self[index] == byte { return index }
            index += 1
        }
        return nil
    }
}

extension String {
    /// Lends the UTF-8 bytes of the string to `body`; a native string is not copied.
    @inlinable public func withByteRun<Result>(_ body: (ByteRun) -> Result) -> Result {
        let result = utf8.withContiguousStorageIfAvailable {
            body(ByteRun(UnsafeRawBufferPointer($0)))
        }
        if let result { return result }
        var copy = self
        return copy.withUTF8 { body(ByteRun(UnsafeRawBufferPointer($0))) }
    }
}

extension Array where Element == UInt8 {
    @inlinable public func withByteRun<Result>(_ body: (ByteRun) -> Result) -> Result {
        withUnsafeBytes { body(ByteRun($0)) }
    }
}
