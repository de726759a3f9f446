package import HTTPCaching

/// A request method, as RFC 9110 §9 names them.
public struct Method: Hashable, Sendable {
    /// The name as it is sent; methods are case-sensitive.
    public let name: String
    package let kind: MethodKind

    /// The method with that name.
    public init(_ name: String) {
        self.name = name
        var name = name
        kind = name.withUTF8 { MethodKind(nameBytes: UnsafeRawBufferPointer($0)) }
    }

    private init(_ name: String, _ kind: MethodKind) {
        self.name = name
        self.kind = kind
    }

    /// GET: transfer a representation.
    public static let get = Self("GET", .get)
    /// HEAD: as GET, without the content.
    public static let head = Self("HEAD", .head)
    /// POST: process the content.
    public static let post = Self("POST", .post)
    /// PUT: replace the resource.
    public static let put = Self("PUT", .put)
    /// PATCH: change the resource.
    public static let patch = Self("PATCH", .patch)
    /// DELETE: remove the resource.
    public static let delete = Self("DELETE", .delete)
    /// OPTIONS: ask what is possible.
    public static let options = Self("OPTIONS", .options)
    /// QUERY: a safe request whose question is its content.
    public static let query = Self("QUERY", .query)

    /// Whether two methods have the same name.
    public static func == (left: Self, right: Self) -> Bool {
        left.kind == right.kind && (left.kind != .other || left.name == right.name)
    }

    /// Feeds the name.
    public func hash(into hasher: inout Hasher) { hasher.combine(name) }
}

extension Method: CustomStringConvertible, ExpressibleByStringLiteral {
    /// The name.
    public var description: String { name }

    /// The method with that name.
    public init(stringLiteral name: String) { self.init(name) }
}
