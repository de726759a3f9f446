/// A JSON text as a value (RFC 8259).
///
/// Objects keep the order of their members.
package indirect enum JSONValue: Hashable, Sendable {
    case null
    case bool(Bool)
    case number(Double)
    case string(String)
    case array([JSONValue])
    case object([JSONMember])
}

/// One member of a JSON object.
package struct JSONMember: Hashable, Sendable {
    package var name: String
    package var value: JSONValue

    package init(_ name: String, _ value: JSONValue) {
        self.name = name
        self.value = value
    }
}

extension JSONValue {
    /// Creates an object from pairs and leaves out members without a value.
    package static func object(of members: [(String, JSONValue?)]) -> JSONValue {
        .object(members.compactMap { name, value in value.map { JSONMember(name, $0) } })
    }

    /// The member with the given name, or `nil` if there is none or this is not an object.
    package subscript(name: String) -> JSONValue? {
        guard case .object(let members) = self else { return nil }
        return members.first { $0.name == name }?.value
    }

    package var text: String? {
        if case .string(let text) = self { return text }
        return nil
    }

    package var double: Double? {
        if case .number(let number) = self { return number }
        return nil
    }

    package var elements: [JSONValue]? {
        if case .array(let elements) = self { return elements }
        return nil
    }

    package var members: [JSONMember]? {
        if case .object(let members) = self { return members }
        return nil
    }
}

extension JSONValue {
    /// The value as text; objects of the outer two levels are spread over lines.
    package var encoded: String {
        var text = ""
        write(into: &text, depth: 0)
        return text + "\n"
    }

    private func write(into text: inout String, depth: Int) {
        switch self {
        case .null: text += "null"
        case .bool(let value): text += value ? "true" : "false"
        case .number(let number): text += Self.encoded(number)
        case .string(let string): Self.write(string, into: &text)
        case .array(let elements):
            let items = elements.map { element in
                { (text: inout String) in element.write(into: &text, depth: depth + 1) }
            }
            Self.write(items, between: ("[", "]"), depth: depth, into: &text)
        case .object(let members):
            let items = members.map { member in
                { (text: inout String) in
                    Self.write(member.name, into: &text)
                    text += ": "
                    member.value.write(into: &text, depth: depth + 1)
                }
            }
            Self.write(items, between: ("{", "}"), depth: depth, into: &text)
        }
    }

    private static func write(
        _ items: [(inout String) -> Void],
        between brackets: (String, String),
        depth: Int,
        into text: inout String
    ) {
        let isSpread = depth < 2 && !items.isEmpty
        text += brackets.0
        for (index, item) in items.enumerated() {
            if index > 0 { text += isSpread ? "," : ", " }
            if isSpread { text += "\n" + String(repeating: "  ", count: depth + 1) }
            item(&text)
        }
        if isSpread { text += "\n" + String(repeating: "  ", count: depth) }
        text += brackets.1
    }

    /// JSON has no infinities; a number that is not finite is written as null.
    private static func encoded(_ number: Double) -> String {
        guard number.isFinite else { return "null" }
        if number == number.rounded(), abs(number) < 1e15 { return String(Int64(number)) }
        return String(number)
    }

    private static func write(_ string: String, into text: inout String) {
        text += "\""
        for scalar in string.unicodeScalars {
            switch scalar {
            case "\"": text += "\\\""
            case "\\": text += "\\\\"
            case "\n": text += "\\n"
            case "\t": text += "\\t"
            case "\r": text += "\\r"
            case _ where scalar.value < 0x20:
                let digits = String(scalar.value, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            default: text.unicodeScalars.append(scalar)
            }
        }
        text += "\""
    }
}
