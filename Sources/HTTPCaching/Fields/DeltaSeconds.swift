/// A non-negative whole number of seconds in a field (RFC 9111 §1.2.2).
public enum DeltaSeconds {
    /// The value for every larger number: 2^31 seconds, as RFC 9111 §1.2.2 prescribes.
    public static let maximum: UInt32 = 1 << 31

    /// Parses digits; returns `nil` if the text is empty or has another character (sign, dot).
    ///
    /// A number above `maximum` becomes `maximum`.
    public static func parse(_ text: ByteRun) -> UInt32? {
        DecimalNumber.parse(text, clampedTo: Int(maximum)).map { UInt32($0) }
    }

    public static func clamp(_ seconds: Int64) -> UInt32 {
        UInt32(max(0, min(seconds, Int64(maximum))))
    }
}
