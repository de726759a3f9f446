package import HTTPCaching

/// The fields of a message, in order; names compare without regard to case (RFC 9110 §5).
///
/// One allocation holds them all. Copies share it until one of them changes.
public struct HeaderFields: Sendable {
    /// None, while `served` holds the lines.
    private var own: FieldSection
    /// Shared with the entry that was served; made a section by whoever changes it.
    ///
    /// Spelled out, as `?` would first store a nil that every hit then destroys.
    private var served: Optional<ServedFields>

    package init(_ section: FieldSection) {
        own = section
        served = nil
    }

    init(_ served: ServedFields) {
        own = FieldSection()
        self.served = served
    }

    /// No fields.
    public init() { self.init(FieldSection()) }

    /// The fields of a list of pairs.
    public init(_ fields: some Sequence<(String, String)>) {
        self.init()
        for (name, value) in fields { append(name, value) }
    }

    package var section: FieldSection { served?.section ?? own }

    /// Whether they tell a cache nothing (`RequestFacts`).
    @inline(__always)
    var areSilent: Bool {
        // Asked first: those of a request are its own.
        if case .none = served { return RequestFacts.areSilent(own) }
        return RequestFacts.areSilent(section)
    }

    /// Calls `read` with the encoded lines, run by run.
    package func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        if let served { served.forEachRun(read) } else { own.withUnsafeBytes(read) }
    }

    /// The section leaves this value while it changes, so that it has one owner and is not copied.
    private mutating func change<Result>(_ body: (inout FieldSection) -> Result) -> Result {
        var section = section
        own = FieldSection()
        served = nil
        defer { own = section }
        return body(&section)
    }

    /// How many field lines there are.
    public var count: Int {
        var count = 0
        forEachLine { _, _ in count += 1 }
        return count
    }

    /// Whether there are no fields.
    public var isEmpty: Bool {
        var isEmpty = true
        forEachRun { isEmpty = isEmpty && $0.isEmpty }
        return isEmpty
    }

    /// The value of a field, its lines joined by a comma as RFC 9110 §5.2 allows.
    ///
    /// Setting replaces every line of that name; setting nil removes them.
    public subscript(name: String) -> String? {
        get { section.combined(name) }
        set {
            change { section in
                if let newValue { section.set(name, newValue) } else { section.remove(name) }
            }
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
        change { $0.append(name, value) }
    }

    /// Removes every line of that name.
    public mutating func remove(_ name: String) { change { $0.remove(name) } }

    /// Calls `visit` with the name and value of each line, as bytes that must not escape.
    public func forEachLine(
        _ visit: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        forEachRun { run in
            var cursor = FieldCursor(run)
            while let line = cursor.next() { visit(line.name.buffer, line.value.buffer) }
        }
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

extension HeaderFields: Hashable {
    /// Whether the same lines stand in the same order.
    public static func == (left: Self, right: Self) -> Bool { left.section == right.section }

    /// Feeds the lines.
    public func hash(into hasher: inout Hasher) { hasher.combine(section) }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// The fields of a literal; names may repeat.
    public init(dictionaryLiteral elements: (String, String)...) { self.init(elements) }
}
