/// Look-up of fields by name, case-insensitive and without allocating.
extension FieldSection {
    public func contains(_ name: String) -> Bool { name.withByteRun { contains($0) } }

    public func contains(_ name: ByteRun) -> Bool {
        containsLine { $0.name.equalsIgnoringCase(name) }
    }

    public func contains(lowercased name: StaticString) -> Bool {
        containsLine { $0.name.equals(lowercased: name) }
    }

    /// The value of the first line with that name.
    public func first(_ name: String) -> String? {
        name.withByteRun { name in withFirst(name) { $0.string } }
    }

    /// The values of all lines with that name, joined by a comma and a space (RFC 9110 §5.3).
    public func combined(_ name: String) -> String? {
        let values = values(name)
        return values.isEmpty ? nil : values.joined(separator: ", ")
    }

    public func values(_ name: String) -> [String] {
        var values: [String] = []
        name.withByteRun { name in
            forEachValue(of: name) { values.append($0.string) }
        }
        return values
    }

    /// Lends the first value of that name to `body`; returns `nil` if no line has that name.
    public func withFirst<Result>(_ name: ByteRun, _ body: (ByteRun) -> Result) -> Result? {
        bytes.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() {
                if line.name.equalsIgnoringCase(name) { return body(line.value) }
            }
            return nil
        }
    }

    public func withFirst<Result>(
        lowercased name: StaticString,
        _ body: (ByteRun) -> Result
    ) -> Result? {
        bytes.withUnsafeBytes { FieldCursor.withFirst(lowercased: name, in: $0, body) }
    }

    /// Visits the values of all lines with that name, in order; the name is a lower-case literal.
    public func forEachValue(of lowercasedName: StaticString, _ body: (ByteRun) -> Void) {
        forEachLine { if $0.name.equals(lowercased: lowercasedName) { body($0.value) } }
    }

    public func forEachValue(of name: ByteRun, _ body: (ByteRun) -> Void) {
        forEachLine { if $0.name.equalsIgnoringCase(name) { body($0.value) } }
    }

    /// A sketch of the names of all lines.
    public var nameSketch: NameSketch {
        var sketch = NameSketch()
        forEachLine { sketch.insert($0.name) }
        return sketch
    }

    func containsLine(where isWanted: (FieldCursor.Line) -> Bool) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var cursor = FieldCursor(buffer)
            while let line = cursor.next() {
                if isWanted(line) { return true }
            }
            return false
        }
    }
}

extension FieldSection: CustomStringConvertible {
    /// The lines in the form of a message, for logs and failed tests.
    public var description: String {
        var text = ""
        forEachLine { text += "\($0.name.string): \($0.value.string)\n" }
        return text
    }
}
