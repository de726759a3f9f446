/// A run of digits as a number.
public enum DecimalNumber {
    /// For lengths: returns `nil` if the text is empty, has a character that is no digit (a sign, a
    /// dot), or exceeds a signed 64-bit number.
    public static func parse(_ text: ByteRun) -> Int? {
        guard let (value, fits) = read(text), fits else { return nil }
        return value
    }

    /// For positions and times: the same, but a number above `maximum` becomes `maximum`.
    public static func parse(_ text: ByteRun, clampedTo maximum: Int) -> Int? {
        read(text).map { min($0.value, maximum) }
    }

    /// A number that does not fit is read as `Int.max`.
    private static func read(_ text: ByteRun) -> (value: Int, fits: Bool)? {
        guard !text.isEmpty else { return nil }
        var value = 0
        var fits = true
        for index in 0..<text.count {
            guard text[index].isDigit else { return nil }
            let (product, overflowed) = value.multipliedReportingOverflow(by: 10)
            let (sum, carried) = product.addingReportingOverflow(Int(text[index] - .zero))
            if overflowed || carried { fits = false }
            value = fits ? sum : .max
        }
        return (value, fits)
    }
}
