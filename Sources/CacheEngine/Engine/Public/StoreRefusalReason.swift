/// A reason not to store a response; an open set with a stable name for each reason.
public struct StoreRefusalReason: Hashable, Sendable, CustomStringConvertible {
    /// The stable name of the reason, as it appears in metrics.
    public let description: String

    /// Creates the reason with that name.
    public init(_ description: String) { self.description = description }
}

extension StoreRefusalReason: ExpressibleByStringLiteral {
    /// Creates the reason with that name, so that a reason can be compared with a word.
    public init(stringLiteral name: String) { self.init(name) }
}
