/// Ages in steps of about a half: 0, 2, 3, 4, 6, 8, 12 and so on.
///
/// An age is a number of newcomers since an entry was requested, counted by `NewcomerClock`.
enum AgeScale {
    static let steps = 56
    /// A number for each step.
    typealias PerStep = InlineArray<56, Double>

    /// The step that an age falls into.
    static func step(of age: UInt64) -> Int {
        guard age >= 2 else { return 0 }
        let exponent = UInt64.bitWidth - 1 - age.leadingZeroBitCount
        let isUpperHalf = age >> UInt64(exponent - 1) & 1 == 1
        return min(steps - 1, 2 * exponent - 1 + (isUpperHalf ? 1 : 0))
    }

    /// The least age of a step.
    static func start(of step: Int) -> Double {
        guard step > 0 else { return 0 }
        let (exponent, half) = (step + 1).quotientAndRemainder(dividingBy: 2)
        return Double(UInt64(1) << UInt64(exponent)) * (half == 0 ? 1 : 1.5)
    }

    /// The length of a step.
    static func length(of step: Int) -> Double { start(of: step + 1) - start(of: step) }
}
