package import HTTPCaching

/// The header fields of a message, in order; names compare without regard to case (RFC 9110 §5).
///
/// One allocation holds all fields. Copies share it until one of them changes.
public struct HeaderFields: Sendable {
    /// The lines; empty if an entry was served.
    private var own: FieldSection
    /// The lines of the entry that was served, and the cache's own.
    ///
    /// A change copies them into the section.
    ///
    /// The type is spelled out, as `?` would first store a `nil` that every hit then destroys.
    private var served: Optional<ServedFields>

    package init(_ section: FieldSection) {
        own = section
        served = nil
    }

    init(_ served: ServedFields) {
        own = FieldSection()
        self.served = served
    }

    /// Creates a value without fields.
    public init() { self.init(FieldSection()) }

    /// Creates the fields from a list of pairs, without those that would break the message.
    public init(_ fields: some Sequence<(String, String)>) {
        self.init()
        for (name, value) in fields { append(name, value) }
    }

    package var section: FieldSection { served?.section ?? own }

    /// The fields of a 304 about the response with these fields; shared lines stay shared.
    var ofNotModified: HeaderFields {
        guard let served else { return HeaderFields(Conditional.notModifiedFields(stored: own)) }
        return HeaderFields(served.ofNotModified)
    }

    /// Makes the fields those of the part `range` of a body of `bodySize` bytes.
    mutating func describePart(_ range: Range<Int>, of bodySize: Int) {
        let linesCount = served?.bytesUsual ?? own.bytes.count
        var part = PartFields(range, of: bodySize, reserving: linesCount)
        forEachRun { part.append($0) }
        self = HeaderFields(part.finish())
    }

    /// The condition that a GET with these fields has on a stored response.
    @inline(__always)
    var hitCondition: RequestFacts.HitCondition {
        // Checked first: the fields of a request are not shared.
        if case .none = served { return RequestFacts.hitCondition(of: own) }
        return RequestFacts.hitCondition(of: section)
    }

    /// Calls `read` with the encoded lines, run by run.
    package func forEachRun(_ read: (UnsafeRawBufferPointer) -> Void) {
        guard let served else { return own.withUnsafeBytes(read) }
        served.forEachRun(read)
    }

    /// The section leaves this value while it changes, so that it has one owner and is not copied.
    private mutating func change<Result>(_ body: (inout FieldSection) -> Result) -> Result {
        var section = section
        own = FieldSection()
        served = nil
        defer { own = section }
        return body(&section)
    }

    /// The number of field lines.
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

    /// The value of a field, its lines joined by commas as RFC 9110 §5.2 allows.
    ///
    /// Several lines of `Set-Cookie` cannot be joined (RFC 9110 §5.3): read them by `values`.
    ///
    /// Setting a value replaces every line of that name; setting `nil` removes them, and so does a
    /// value that would break the message (CR, LF, NUL), so that an older one is never sent in its
    /// place.
    public subscript(name: String) -> String? {
        get { section.combined(name) }
        set {
            change { section in
                if let newValue, section.set(name, newValue) { return }
                if newValue == nil || !Mutant.keepsTheReplacedValue.isOn { section.remove(name) }
            }
        }
    }

    /// The values of every line of that name, in order.
    public func values(_ name: String) -> [String] { section.values(name) }

    /// Whether there is a field of that name.
    public func contains(_ name: String) -> Bool { section.contains(name) }

    /// Adds a line after the others.
    ///
    /// - Returns: `false` if the name or value would break the message (RFC 9110 §5.5: CR, LF,
    ///   NUL); the fields are unchanged then.
    @discardableResult
    public mutating func append(_ name: String, _ value: String) -> Bool {
        change { $0.append(name, value) }
    }

    /// Adds lines after the others.
    mutating func append(_ lines: FieldSection) {
        guard !lines.isEmpty else { return }
        change { section in lines.withUnsafeBytes { section.append(trusted: $0) } }
    }

    /// Removes every line of that name.
    public mutating func remove(_ name: String) { change { $0.remove(name) } }

    /// Calls `visit` with the name and value of each line, as bytes that must not escape.
    public func forEachLine(
        _ visit: (_ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) -> Void
    ) {
        forEachRun { FieldCursor.forEachLine(in: $0, visit) }
    }

    /// The name and value of every line.
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
    /// Whether both values have the same lines in the same order.
    public static func == (left: Self, right: Self) -> Bool { left.section == right.section }

    /// Feeds the lines into the hasher.
    public func hash(into hasher: inout Hasher) { hasher.combine(section) }
}

extension HeaderFields: ExpressibleByDictionaryLiteral {
    /// Creates the fields of a literal, without those that would break the message; names may repeat.
    public init(dictionaryLiteral elements: (String, String)...) { self.init(elements) }
}

extension HeaderFields: Sequence {
    /// An iterator over the name and value of every line, in order.
    public func makeIterator() -> IndexingIterator<[(name: String, value: String)]> {
        pairs.makeIterator()
    }
}

extension HeaderFields: CustomStringConvertible {
    /// The lines in the form of a message, with credentials and cookies.
    public var description: String { section.description }
}
