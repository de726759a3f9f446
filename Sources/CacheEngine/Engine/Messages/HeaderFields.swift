package import HTTPCaching

/// The fields of a message, in order; names compare without regard to case (RFC 9110 §5).
///
/// One allocation holds them all. Copies share it until one of them changes.
public struct HeaderFields: Sendable, Hashable {
    package var section: FieldSection

    package init(_ section: FieldSection) { self.section = section }

    /// No fields.
    public init() { section = FieldSection() }

    /// The fields of a list of pairs.
    public init(_ fields: some Sequence<(String, String)>) {
        self.init()
        for (name, value) in fields { append(name, value) }
    }

    /// How many field lines there are.
    public var count: Int { section.count }
    /// Whether there are no fields.
    public var isEmpty: Bool { section.bytes.isEmpty }

    /// The value of a field, its lines joined by a comma as RFC 9110 §5.2 allows.
    ///
    /// Setting replaces every line of that name; setting nil removes them.
    public subscript(name: String) -> String? {
        get { section.combined(name) }
        set {
            if let newValue { section.set(name, newValue) } else { section.remove(name) }
        }
    }

    /// The values of every line of that name, in order.
    public func values(_ name: String) -> [String] { section.values(name) }

    /// Whether there is a field of that name.
    public func contains(_ name: String) -> Bool { section.contains(name) }

    /// Adds a line behind the others.
    ///
    /// - Returns: False, and nothing changes, for a name or value that would break the message
    ///   (RFC 9110 §5.5: CR, LF, NUL).
    @discardableResult
    public mutating func append(_ name: String, _ value: String) -> Bool {
        section.append(name, value)
    }

    /// Removes every line of that name.
    public mutating func remove(_ name: String) { section.remove(name) }

    /// Calls `visit` with the name and value of each line, as bytes that must not escape.
    public func forEachLine(
        _ visit: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        section.forEachField { name, value in visit(name, value) }
    }

    /// Every line as a pair of texts.
    public var pairs: [(name: String, value: String)] {
        var pairs: [(name: String, value: String)] = []
        forEachLine { name, value in
            pairs.append(
                (String(decoding: name, as: UTF8.self), String(decoding: value, as: UTF8.self))
            )
        }
        return pairs
    }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// The fields of a literal; names may repeat.
    public init(dictionaryLiteral elements: (String, String)...) { self.init(elements) }
}
