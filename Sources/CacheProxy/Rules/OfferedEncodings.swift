import CacheEngine
import HTTPCaching

/// The content encodings that the origins offer, in the order of preference: `br,gzip`.
///
/// `Accept-Encoding` of every request is replaced by the one that its client accepts best, or by
/// `identity` if the client prefers that or accepts no other. So `Vary: Accept-Encoding` makes one
/// variant of each. The cache and the origin get the same field: if only the key were folded, a
/// client could get the encoding that another client's field brought (decision 0063).
struct OfferedEncodings: Hashable, Sendable {
    /// Names in one list: each is looked for in the field of every request.
    static let namesMax = 16
    /// No encoding (RFC 9110 §12.5.3).
    private static let identity = "identity"

    /// The names in lower case.
    let names: [String]
    /// The same, then `identity`: with an equal weight the others come first.
    private let choices: [String]

    /// Reads the written form.
    init(parsing text: String) throws(ValueFault) {
        names = try ConfigurationValue.names(in: text, atMost: Self.namesMax) {
            (item) throws(ValueFault) in
            let name = item.lowercased()
            guard !name.isEmpty, name != "*", name.utf8.allSatisfy(ByteClass.isToken) else {
                throw ValueFault(
                    "`\(item)` is not the name of an encoding",
                    give: "names as br, gzip or zstd"
                )
            }
            guard name != Self.identity else {
                throw ValueFault("`identity` is always offered", give: "the others")
            }
            return name
        }
        choices = names + [Self.identity]
    }

    /// The fields with the one encoding that the cache and the origin get.
    func chosen(in fields: HeaderFields) -> HeaderFields {
        var section = fields.section
        let best = FieldNormalization.bestIndex(
            among: choices,
            in: "accept-encoding",
            of: section
        )
        section.set("Accept-Encoding", best.map { choices[$0] } ?? Self.identity)
        return HeaderFields(section)
    }
}
