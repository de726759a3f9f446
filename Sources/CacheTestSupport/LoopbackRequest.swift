/// A request as the server received it.
public struct LoopbackRequest: Sendable {
    /// The method.
    public var method: String
    /// The target, byte for byte.
    public var target: String
    /// The version, such as `HTTP/1.1`.
    public var version: String
    /// The field lines, in order.
    public var fields: [(name: String, value: String)]
    /// The content, with a chunked coding decoded.
    public var body: [UInt8]

    /// The first value of the field; the name is not case-sensitive.
    public subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The target's path, which ends before the query.
    public var path: String { String(target.prefix { $0 != "?" }) }
}

/// The reason why a test server could not be created.
public struct LoopbackFailure: Error, CustomStringConvertible {
    /// The failed call and its error number.
    public let description: String

    package init(description: String) { self.description = description }
}
