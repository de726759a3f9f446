/// A borrowed run of bytes, valid only while the memory it was made from stays in place.
///
/// Every read is bounds-checked, also in optimised builds: a parser error traps instead of reading
/// foreign memory. The type is not `Sendable` and must not be stored. It is valid only inside the
/// `withUnsafeBytes` closure that made it.
package struct ByteRun {
    package let buffer: UnsafeRawBufferPointer

    package init(_ buffer: UnsafeRawBufferPointer) { self.buffer = buffer }

    package var count: Int { buffer.count }
    package var isEmpty: Bool { buffer.isEmpty }

    package subscript(index: Int) -> UInt8 {
        precondition(UInt(bitPattern: index) < UInt(bitPattern: buffer.count))
        return buffer[index]
    }

    /// The bytes of `range`, without copying.
    package subscript(range: Range<Int>) -> ByteRun {
        precondition(range.lowerBound >= 0 && range.upperBound <= buffer.count)
        return ByteRun(UnsafeRawBufferPointer(rebasing: buffer[range]))
    }

    /// The run without leading and trailing optional whitespace (RFC 9110 §5.6.3).
    package var trimmed: ByteRun {
        var lower = 0
        var upper = count
        while lower < upper, self[lower].isOptionalWhitespace { lower += 1 }
        while upper > lower, self[upper - 1].isOptionalWhitespace { upper -= 1 }
        return self[lower..<upper]
    }

    /// Whether these bytes equal `lowercased`, a literal in lower case, when ASCII case is ignored.
    package func equals(lowercased: StaticString) -> Bool {
        guard count == lowercased.utf8CodeUnitCount else { return false }
        return lowercased.withUTF8Buffer { literal in
            for index in 0..<literal.count where self[index].lowercased != literal[index] {
                return false
            }
            return true
        }
    }

    package func equalsIgnoringCase(_ other: ByteRun) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index].lowercased != other[index].lowercased {
            return false
        }
        return true
    }

    package func equals(_ other: ByteRun) -> Bool {
        guard count == other.count else { return false }
        for index in 0..<count where self[index] != other[index] { return false }
        return true
    }

    /// Compares with a literal byte by byte, for case-sensitive names (methods, units).
    package func equals(exactly literal: StaticString) -> Bool {
        guard count == literal.utf8CodeUnitCount else { return false }
        return literal.withUTF8Buffer { bytes in
            for index in 0..<bytes.count where self[index] != bytes[index] { return false }
            return true
        }
    }

    package var string: String { String(decoding: buffer, as: UTF8.self) }

    package func index(of byte: UInt8, from start: Int = 0) -> Int? {
        var index = start
        while index < count {
            if self[index] == byte { return index }
            index += 1
        }
        return nil
    }
}

extension String {
    /// Lends the UTF-8 bytes of the string to `body`; a native string is not copied.
    package func withByteRun<Result>(_ body: (ByteRun) -> Result) -> Result {
        var copy = self
        return copy.withUTF8 { body(ByteRun(UnsafeRawBufferPointer($0))) }
    }
}

extension StaticString {
    package func withByteRun<Result>(_ body: (ByteRun) -> Result) -> Result {
        withUTF8Buffer { body(ByteRun(UnsafeRawBufferPointer($0))) }
    }
}

extension Array where Element == UInt8 {
    package func withByteRun<Result>(_ body: (ByteRun) -> Result) -> Result {
        withUnsafeBytes { body(ByteRun($0)) }
    }
}
