/// Writes numbers as text without allocating.
enum DecimalText {
    /// The bytes that the longest number needs.
    static let bytesMax = 20

    /// Writes `value` at the front of `target`.
    ///
    /// - Returns: The number of bytes written.
    static func write(_ value: Int, into target: UnsafeMutableRawBufferPointer) -> Int {
        precondition(target.count >= bytesMax)
        var magnitude = value.magnitude
        var digits = 0
        var reversed: (UInt64, UInt64, UInt64) = (0, 0, 0)
        withUnsafeMutableBytes(of: &reversed) { buffer in
            repeat {
                buffer[digits] = UInt8(ascii: "0") + UInt8(magnitude % 10)
                magnitude /= 10
                digits += 1
            } while magnitude > 0
        }
        var count = 0
        if value < 0 {
            target[0] = UInt8(ascii: "-")
            count = 1
        }
        withUnsafeBytes(of: &reversed) { buffer in
            for index in 0..<digits { target[count + index] = buffer[digits - 1 - index] }
        }
        return count + digits
    }
}
