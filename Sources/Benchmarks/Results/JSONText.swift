import Foundation

/// Writes and reads JSON: the results of runs, and the lines of peers.
package enum JSONText {
    /// The value as text of several lines; members are in the order of their names.
    package static func encode(_ value: some Encodable) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        encoder.nonConformingFloatEncodingStrategy = .convertToString(
            positiveInfinity: "infinity",
            negativeInfinity: "-infinity",
            nan: "nan"
        )
        return String(decoding: try encoder.encode(value), as: UTF8.self) + "\n"
    }

    package static func decode<Value: Decodable>(
        _ type: Value.Type = Value.self,
        from text: String
    ) throws -> Value {
        let decoder = JSONDecoder()
        decoder.nonConformingFloatDecodingStrategy = .convertFromString(
            positiveInfinity: "infinity",
            negativeInfinity: "-infinity",
            nan: "nan"
        )
        do {
            return try decoder.decode(type, from: Data(text.utf8))
        } catch let error as DecodingError {
            throw JSONError(error)
        }
    }
}

/// The reason why a text is not the JSON that was expected.
package struct JSONError: Error, CustomStringConvertible {
    package let description: String

    init(_ error: DecodingError) {
        switch error {
        case .keyNotFound(let key, let context):
            let place = Self.place(context.codingPath + [key])
            description = "invalid JSON: the member `\(place)` is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            let place = Self.place(context.codingPath)
            description = "invalid JSON: the value of `\(place)` is of another type"
        default: description = "invalid JSON: the text cannot be parsed"
        }
    }

    private static func place(_ path: [any CodingKey]) -> String {
        path.map(\.stringValue).joined(separator: ".")
    }
}
