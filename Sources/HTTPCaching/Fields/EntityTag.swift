/// An entity tag (RFC 9110 §8.8.3), borrowed from its field.
///
/// A tag that breaks the grammar (mostly one without quotes) still identifies a version at its
/// server. It is kept whole, counts as weak, and equals only a tag of exactly the same bytes. `*`,
/// which stands for any tag in a condition, is no tag.
public struct EntityTag {
    public enum Form: Hashable, Sendable { case strong, weak, malformed }

    public let form: Form
    /// The text between the quotes; the whole text of a malformed tag.
    public let opaque: ByteRun

    public init?(_ field: ByteRun) {
        let text = field.trimmed
        guard !text.isEmpty else { return nil }
        let isWeak = text.count >= 2 && text[0] == 0x57 && text[1] == .slash
        if let opaque = Self.quotedContent(isWeak ? text[2..<text.count] : text) {
            form = isWeak ? .weak : .strong
            self.opaque = opaque
            return
        }
        if text.equals(exactly: "*") { return nil }
        // A list of tags, or a text that contains whitespace, identifies nothing.
        for index in 0..<text.count where text[index] <= .space || text[index] == .comma {
            return nil
        }
        form = .malformed
        opaque = text
    }

    public var isStrong: Bool { form == .strong || Mutant.takesWeakTagsForStrong.isOn }

    /// The strong comparison of RFC 9110 §8.8.3.2: both tags are strong and their text is equal.
    public func stronglyEquals(_ other: EntityTag) -> Bool {
        isStrong && other.isStrong && opaque.equals(other.opaque)
    }

    /// The weak comparison of RFC 9110 §8.8.3.2: the text is equal.
    public func weaklyEquals(_ other: EntityTag) -> Bool {
        (form == .malformed) == (other.form == .malformed) && opaque.equals(other.opaque)
    }

    private static func quotedContent(_ text: ByteRun) -> ByteRun? {
        guard text.count >= 2, text[0] == .quote, text[text.count - 1] == .quote else { return nil }
        let content = text[1..<(text.count - 1)]
        for index in 0..<content.count where !content[index].isEntityTagContent { return nil }
        return content
    }
}

/// Reads the tags of an If-Match or If-None-Match line, which is `*` or a list.
///
/// A tag may contain commas.
public struct EntityTagScanner {
    private let text: ByteRun
    private var position = 0

    public init(_ text: ByteRun) { self.text = text }

    /// The next tag; skips members that are not tags.
    public mutating func next() -> EntityTag? {
        while position < text.count {
            let start = position
            position = endOfMember(from: start)
            let member = text[start..<position]
            position += 1
            if let tag = EntityTag(member) { return tag }
        }
        return nil
    }

    // Not a quoted-string: an entity tag has no escapes, so a backslash stands for itself.
    private func endOfMember(from start: Int) -> Int {
        var index = start
        var isQuoted = false
        while index < text.count {
            if text[index] == .quote { isQuoted.toggle() }
            if text[index] == .comma, !isQuoted { return index }
            index += 1
        }
        return text.count
    }
}
