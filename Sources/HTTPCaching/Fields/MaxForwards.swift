/// The proxies that a request may still pass (RFC 9110 §7.6.2).
///
/// The field binds every proxy for TRACE and OPTIONS, and may be ignored for other methods.
package enum MaxForwards: Hashable, Sendable {
    /// The field is missing or malformed, and does not limit the request.
    case unlimited
    /// The receiver responds as the final recipient.
    case exhausted
    /// The number for the next recipient.
    case next(Int)

    /// The largest number that is forwarded.
    package static let maximum = 255

    /// Reads the fields of a request; the smallest of several numbers counts.
    package init(_ fields: FieldSection) {
        var smallest: Int?
        fields.forEachValue(of: "max-forwards") { value in
            guard let number = Self.parse(value) else { return }
            smallest = min(number, smallest ?? number)
        }
        switch smallest {
        case nil: self = .unlimited
        case 0: self = .exhausted
        case let number?: self = .next(number - 1)
        }
    }

    /// Parses digits; a number whose successor is above `maximum` is cut.
    private static func parse(_ text: ByteRun) -> Int? {
        guard !text.isEmpty else { return nil }
        var value = 0
        for index in 0..<text.count {
            guard text[index].isDigit else { return nil }
            value = min(value * 10 + Int(text[index] - .zero), maximum + 1)
        }
        return value
    }
}
