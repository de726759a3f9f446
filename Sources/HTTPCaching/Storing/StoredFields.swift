/// The fields as they are stored (RFC 9111 §3.1): those that belong to one connection, those that
/// `no-cache="…"` or `private="…"` name, and Set-Cookie where the policy says so, are left out.
package enum StoredFields {
    /// What is stored of `fields`, with the time of receipt as Date where the response has none that
    /// is a date (RFC 9110 §6.6.1).
    package static func make(
        from fields: FieldSection,
        response: ResponseFacts,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> FieldSection {
        var stored = HopByHop.strip(fields, for: .storing)
        // RFC 9112 §6.3: beside Transfer-Encoding, Content-Length says nothing.
        if response.flags.contains(.hasTransferEncoding) {
            stored.remove(lowercased: "content-length")
        }
        let omitted = OmittedFields(fields, response: response, rules: rules)
        stored.removeAll { omitted.contains($0) }
        if response.dateSeconds == nil { stored.set("Date", HTTPDate.string(receivedAtSeconds)) }
        return stored
    }
}

/// The names that qualified directives take out of a stored response (RFC 9111 §5.2.2.4, §5.2.2.7).
struct OmittedFields {
    private var names: Set<String> = []

    init(_ fields: FieldSection, response: ResponseFacts, rules: StoringRules) {
        if rules.mode == .shared, rules.cookies == .storeWithoutCookies {
            names.insert("set-cookie")
        }
        guard response.directives.omitsFields(in: rules.mode) else { return }
        for name in ["Cache-Control"] + rules.targetedFields {
            name.withByteRun { name in
                fields.forEachValue(of: name) { add($0, mode: rules.mode) }
            }
        }
    }

    func contains(_ name: ByteRun) -> Bool {
        !names.isEmpty && names.contains(name.string.lowercased())
    }

    private mutating func add(_ line: ByteRun, mode: CacheMode) {
        var scanner = DirectiveScanner(line)
        while let directive = scanner.next() {
            let isNaming =
                directive.name.equals(lowercased: "no-cache")
                || (mode == .shared && directive.name.equals(lowercased: "private"))
            guard isNaming, directive.argument.namesFields,
                let list = directive.argument.fieldList
            else { continue }
            var members = ListScanner(list)
            while let member = members.next() { names.insert(member.string.lowercased()) }
        }
    }
}
