/// A request as it came in.
public struct LoopbackRequest: Sendable {
    /// The method.
    public var method: String
    /// The target, byte for byte.
    public var target: String
    /// The version, as `HTTP/1.1`.
    public var version: String
    /// The field lines in order.
    public var fields: [(name: String, value: String)]
    /// The content, decoded from chunks where it came in chunks.
    public var body: [UInt8]

    /// The first value of that name, in any case.
    public subscript(name: String) -> String? {
        fields.first { $0.name.lowercased() == name.lowercased() }?.value
    }

    /// The path of the target: what stands before the query.
    public var path: String { String(target.prefix { $0 != "?" }) }
}

/// Why a test server could not be made.
public struct LoopbackFailure: Error, CustomStringConvertible {
    /// What the system said.
    public let description: String
}
