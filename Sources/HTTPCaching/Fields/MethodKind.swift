/// The methods that the rules distinguish (RFC 9110 §9, RFC 5789, RFC 10008 for QUERY).
///
/// Method names are case-sensitive: `get` is an unknown method, and an unknown method is unsafe.
public enum MethodKind: UInt8, Sendable, Hashable, CaseIterable {
    case get, head, post, put, delete, options, trace, query, patch, connect, other

    public init(_ name: ByteRun) {
        switch name.count {
        case 3:
            self = name.equals(exactly: "GET") ? .get : name.equals(exactly: "PUT") ? .put : .other
        case 4:
            self =
                name.equals(exactly: "HEAD") ? .head : name.equals(exactly: "POST") ? .post : .other
        case 5:
            self =
                name.equals(exactly: "TRACE")
                ? .trace
                : name.equals(exactly: "QUERY")
                    ? .query : name.equals(exactly: "PATCH") ? .patch : .other
        case 6: self = name.equals(exactly: "DELETE") ? .delete : .other
        case 7:
            self =
                name.equals(exactly: "OPTIONS")
                ? .options : name.equals(exactly: "CONNECT") ? .connect : .other
        default: self = .other
        }
    }

    public init(nameBytes: UnsafeRawBufferPointer) { self.init(ByteRun(nameBytes)) }

    public init(_ name: String) { self = name.withByteRun { MethodKind($0) } }

    /// Whether sending a request twice has the same effect as sending it once (RFC 9110 §9.2.2).
    public var isIdempotent: Bool {
        switch self {
        case .get, .head, .put, .delete, .options, .trace, .query: true
        case .post, .patch, .connect, .other: false
        }
    }

    /// Whether the method is essentially read-only (RFC 9110 §9.2.1).
    public var isSafe: Bool {
        switch self {
        case .get, .head, .options, .trace, .query: true
        case .post, .put, .delete, .patch, .connect, .other: false
        }
    }

    /// A method that is not known to be safe counts as unsafe (RFC 9111 §4.4).
    public var isUnsafe: Bool { !isSafe }
}
