package import HTTPCaching

/// A request method (RFC 9110 §9).
public struct HTTPMethod: Hashable, Sendable {
    /// The name as it is sent; names are case-sensitive.
    public let name: String
    package let kind: MethodKind

    /// Creates the method with that name.
    public init(_ name: String) {
        self.name = name
        var name = name
        kind = name.withUTF8 { MethodKind(nameBytes: UnsafeRawBufferPointer($0)) }
    }

    private init(_ name: String, _ kind: MethodKind) {
        self.name = name
        self.kind = kind
    }

    /// The GET method, which transfers a representation.
    public static let get = Self("GET", .get)
    /// The HEAD method, which is GET without the content.
    public static let head = Self("HEAD", .head)
    /// The POST method, which processes the content.
    public static let post = Self("POST", .post)
    /// The PUT method, which replaces the resource.
    public static let put = Self("PUT", .put)
    /// The PATCH method, which changes the resource.
    public static let patch = Self("PATCH", .patch)
    /// The DELETE method, which removes the resource.
    public static let delete = Self("DELETE", .delete)
    /// The OPTIONS method, which asks for the communication options.
    public static let options = Self("OPTIONS", .options)
    /// The QUERY method, which is safe and carries its query as content.
    public static let query = Self("QUERY", .query)

    /// Whether two methods have the same name.
    public static func == (left: Self, right: Self) -> Bool {
        left.kind == right.kind && (left.kind != .other || left.name == right.name)
    }

    /// Feeds the name into the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension HTTPMethod: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The name of the method.
    public var description: String { name }

    /// Creates the method with that name.
    public init(stringLiteral name: String) { self.init(name) }
}
