/// Writes numbers as decimal text without allocating.
public enum DecimalText {
    /// The bytes that the longest number needs: a sign and the 19 digits of 2^63.
    public static let bytesMax = 20

    /// Writes `value` at the front of `target`.
    ///
    /// - Returns: The number of bytes written.
    public static func write(_ value: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
        precondition(target.count >= bytesMax)
        let count = (value < 0 ? 1 : 0) + digitCount(value.magnitude)
        assert(count <= bytesMax, "the longest number fits")
        var rest = value.magnitude
        var place = count
        repeat {
            place -= 1
            target[place] = UInt8(ascii: "0") + UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        } while rest > 0
        if value < 0 { target[0] = UInt8(ascii: "-") }
        return count
    }

    /// Lends the text of `value` to `body`.
    static func withText(of value: Int, _ body: (ByteRun) -> Void) {
        withUnsafeTemporaryAllocation(byteCount: bytesMax, alignment: 1) { target in
            let count = write(value, into: target)
            body(ByteRun(UnsafeRawBufferPointer(rebasing: target[..<count])))
        }
    }

    private static func digitCount(_ magnitude: UInt) -> Int {
        var count = 1
        var limit: UInt = 10
        while magnitude >= limit {
            count += 1
            limit &*= 10
        }
        return count
    }
}
