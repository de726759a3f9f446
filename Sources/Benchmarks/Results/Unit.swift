/// The unit of a figure; the set is open because a peer's tool may use a unit of its own.
package struct Unit: RawRepresentable, Hashable, Codable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }

    package static let nanoseconds = Self(rawValue: "ns")
    package static let operationsPerSecond = Self(rawValue: "op/s")
    package static let bytesPerSecond = Self(rawValue: "B/s")
    package static let bytes = Self(rawValue: "B")
    package static let count = Self(rawValue: "count")
    /// Allocations per operation.
    package static let allocations = Self(rawValue: "allocations/op")
    /// A part of a whole, from 0 to 1, or a factor.
    package static let share = Self(rawValue: "share")
}

extension Unit {
    /// The value for a reader: three significant digits and a suitable multiple of the unit.
    package func readable(_ value: Double) -> String {
        switch self {
        case .nanoseconds:
            Self.scaled(value, by: 1000, ["ns", "us", "ms", "s"])
        case .operationsPerSecond:
            Self.scaled(value, by: 1000, ["/s", "k/s", "M/s", "G/s"])
        case .bytesPerSecond:
            Self.scaled(value, by: 1024, ["B/s", "KiB/s", "MiB/s", "GiB/s"])
        case .bytes:
            Self.scaled(value, by: 1024, ["B", "KiB", "MiB", "GiB", "TiB"])
        case .count, .allocations, .share:
            value.threeDigits
        default:
            "\(value.threeDigits) \(rawValue)"
        }
    }

    private static func scaled(_ value: Double, by step: Double, _ names: [String]) -> String {
        var value = value
        var index = 0
        // 999.5 would be rounded to 1000.
        while abs(value) >= step - 0.5, index < names.count - 1 {
            value /= step
            index += 1
        }
        return "\(value.threeDigits) \(names[index])"
    }
}

extension Double {
    /// The decimal number with `digits` places after the point, rounded half away from zero.
    package func fixed(_ digits: Int) -> String {
        guard isFinite, abs(self) < 1e15 else { return isNaN ? "-" : String(self) }
        var scale = 1.0
        for _ in 0..<digits { scale *= 10 }
        let scaled = (abs(self) * scale).rounded()
        let whole = Int64(scaled / scale)
        let sign = self < 0 && scaled > 0 ? "-" : ""
        guard digits > 0 else { return sign + String(Int64(scaled)) }
        let rest = String(Int64(scaled) - whole * Int64(scale))
        return "\(sign)\(whole)." + String(repeating: "0", count: digits - rest.count) + rest
    }

    /// The number with at most three digits and no trailing zeros, for the labels of axes.
    package var shortest: String {
        var text = threeDigits
        guard text.contains(".") else { return text }
        while text.hasSuffix("0") { text.removeLast() }
        if text.hasSuffix(".") { text.removeLast() }
        return text
    }

    /// The number with three significant digits: 0.123, 1.23, 12.3, 123, 1234.
    package var threeDigits: String {
        if self == 0 { return "0" }
        if self == rounded(), abs(self) < 1000 { return fixed(0) }
        return switch abs(self) {
        case ..<0.0095: fixed(4)
        case ..<0.995: fixed(3)
        case ..<9.995: fixed(2)
        case ..<99.95: fixed(1)
        default: fixed(0)
        }
    }
}
