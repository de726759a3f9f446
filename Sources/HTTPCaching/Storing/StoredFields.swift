/// The fields of a response as they are stored (RFC 9111 §3.1).
///
/// Fields of one connection, fields that `no-cache="…"` or `private="…"` names, and Set-Cookie if
/// the policy says so, are left out.
public enum StoredFields {
    /// The fields to store.
    ///
    /// A missing or invalid Date becomes the time of receipt (RFC 9110 §6.6.1).
    public static func make(
        from fields: FieldSection,
        response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> FieldSection {
        var stored = HopByHop.strip(fields, for: .storing)
        // RFC 9112 §6.3: Transfer-Encoding overrides Content-Length.
        if response.flags.contains(.hasTransferEncoding) {
            stored.remove(lowercased: "content-length")
        }
        let omitted = OmittedFields(fields, response: response, rules: rules)
        stored.removeAll { omitted.contains($0) }
        if response.dateSeconds == nil { stored.set("Date", HTTPDate.string(receivedAtSeconds)) }
        return stored
    }
}

/// The fields that directives exclude from a stored response (RFC 9111 §5.2.2.4, §5.2.2.7).
struct OmittedFields {
    /// Whether cookies are left out; apart from the names, which most responses do not need.
    private let omitsCookies: Bool
    private var names: Set<String> = []

    init(_ fields: FieldSection, response: ResponseFacts, rules: StoringRules) {
        omitsCookies =
            rules.mode == .shared && (rules.cookies == .strip || rules.cookies == .refuse)
        guard response.directives.omitsFields(in: rules.mode) else { return }
        fields.forEachValue(of: "cache-control") { line in
            var scanner = DirectiveScanner(line)
            while let directive = scanner.next() {
                add(directive.name, directive.argument, rules.mode)
            }
        }
        for name in rules.targetedFields {
            name.withByteRun { name in
                fields.forEachValue(of: name) { addTargeted($0, rules.mode) }
            }
        }
    }

    /// Reads the names of a targeted field as `ResponseDirectives.targeted` reads its directives.
    ///
    /// Cache-Control has another grammar: by it a parameter would make the argument malformed.
    private mutating func addTargeted(_ line: ByteRun, _ mode: CacheMode) {
        var dictionary = StructuredDictionary(line)
        while case .member(let member) = dictionary.next() {
            if case .string(let list) = member.value { add(member.key, .quoted(list), mode) }
        }
    }

    func contains(_ name: ByteRun) -> Bool {
        if omitsCookies, name.equals(lowercased: "set-cookie") { return true }
        return !names.isEmpty && names.contains(name.string.lowercased())
    }

    private mutating func add(
        _ directive: ByteRun,
        _ argument: DirectiveScanner.Argument,
        _ mode: CacheMode
    ) {
        let isNaming =
            directive.equals(lowercased: "no-cache")
            || (mode == .shared && directive.equals(lowercased: "private"))
        guard isNaming, argument.namesFields, let list = argument.fieldList else { return }
        var members = ListScanner(list)
        while let member = members.next() { names.insert(member.string.lowercased()) }
    }
}
