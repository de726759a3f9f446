/// The proxies that a request may still pass (RFC 9110 §7.6.2).
///
/// The field binds every proxy for TRACE and OPTIONS, and may be ignored for other methods.
public enum MaxForwards: Hashable, Sendable {
    /// The field is missing or malformed, and does not limit the request.
    case unlimited
    /// The receiver responds as the final recipient.
    case exhausted
    /// The number for the next recipient.
    case next(Int)

    /// The largest number that is forwarded.
    public static let maximum = 255

    /// Reads the fields of a request; the smallest of several numbers counts.
    public init(_ fields: FieldSection) {
        var smallest: Int?
        fields.forEachValue(of: "max-forwards") { value in
            // A larger number is cut: the next recipient gets at most `maximum`.
            guard let number = DecimalNumber.parse(value, clampedTo: Self.maximum + 1) else {
                return
            }
            smallest = min(number, smallest ?? number)
        }
        switch smallest {
        case nil: self = .unlimited
        case 0: self = .exhausted
        case let number?: self = .next(number - 1)
        }
    }
}
