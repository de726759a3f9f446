/// RFC 9111 §1.2.2: a non-negative whole number of seconds, as it stands in a field.
package enum DeltaSeconds {
    /// What does not fit means "for ever": 2^31 seconds, the value the RFC names.
    package static let maximum: UInt32 = 1 << 31

    /// Digits only; nil for a sign, a fraction, an empty text.
    ///
    /// Too large a number is the maximum.
    package static func parse(_ text: ByteRun) -> UInt32? {
        guard !text.isEmpty else { return nil }
        var value: UInt64 = 0
        for index in 0..<text.count {
            let byte = text[index]
            guard byte.isDigit else { return nil }
            value = min(value * 10 + UInt64(byte - .zero), UInt64(maximum))
        }
        return UInt32(value)
    }

    package static func clamp(_ seconds: Int64) -> UInt32 {
        UInt32(max(0, min(seconds, Int64(maximum))))
    }
}
