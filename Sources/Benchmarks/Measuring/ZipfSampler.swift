import Platform

/// Draws ranks from 0 to `count - 1` with a probability proportional to 1 / (rank + 1)^exponent.
///
/// Rejection-inversion (Hörmann and Derflinger, "Rejection-inversion to generate variates from
/// monotone discrete distributions", 1996): constant time and memory for any count.
package struct ZipfSampler: Sendable {
    package let count: Int
    package let exponent: Double
    private let integralAtFirst: Double
    private let integralAtLast: Double
    private let threshold: Double

    package init(count: Int, exponent: Double) {
        precondition(count >= 1 && exponent >= 0)
        self.count = count
        self.exponent = exponent
        integralAtFirst = Self.integral(1.5, exponent) - 1
        integralAtLast = Self.integral(Double(count) + 0.5, exponent)
        let second = Self.integral(2.5, exponent) - Self.power(2, exponent)
        threshold = 2 - Self.inverse(second, exponent)
    }

    package func draw(from random: inout some RandomNumberGenerator) -> Int {
        while true {
            let position =
                integralAtLast
                + Double.random(in: 0..<1, using: &random) * (integralAtFirst - integralAtLast)
            let point = Self.inverse(position, exponent)
            let rank = min(Double(count), max(1, point.rounded()))
            if rank - point <= threshold
                || position >= Self.integral(rank + 0.5, exponent) - Self.power(rank, exponent)
            {
                return Int(rank) - 1
            }
        }
    }

    /// Draws indices of `count` keys before the measurement; which keys are hot is random too.
    package func scatteredSequence(
        _ length: Int,
        from random: inout some RandomNumberGenerator
    ) -> [UInt32] {
        var keyOfRank = [UInt32](0..<UInt32(count))
        keyOfRank.shuffle(using: &random)
        return (0..<length).map { _ in keyOfRank[draw(from: &random)] }
    }

    private static func power(_ value: Double, _ exponent: Double) -> Double {
        exp(-exponent * log(value))
    }

    /// The antiderivative of x^-exponent, up to a constant.
    private static func integral(_ value: Double, _ exponent: Double) -> Double {
        let logarithm = log(value)
        return growth((1 - exponent) * logarithm) * logarithm
    }

    private static func inverse(_ value: Double, _ exponent: Double) -> Double {
        let scaled = max(-1, value * (1 - exponent))
        return exp(logGrowth(scaled) * value)
    }

    /// (e^x - 1) / x, accurate also near zero.
    private static func growth(_ value: Double) -> Double {
        abs(value) > 1e-8 ? expm1(value) / value : 1 + value / 2 * (1 + value / 3)
    }

    /// log(1 + x) / x, accurate also near zero.
    private static func logGrowth(_ value: Double) -> Double {
        abs(value) > 1e-8 ? log1p(value) / value : 1 - value * (0.5 - value / 3)
    }
}
