import HTTPCaching

/// Complete heads, processed by every rule.
///
/// The input consists of the lines of a request, an empty line, the lines of its response, an empty
/// line, and the lines of a later 304.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzz(_ start: UnsafePointer<UInt8>, _ count: Int) -> CInt {
    let input = UnsafeBufferPointer(start: start, count: count)
    var sections = [FieldSection(), FieldSection(), FieldSection()]
    var section = 0
    for line in input.split(separator: 0x0A, omittingEmptySubsequences: false) {
        if line.isEmpty { section = min(section + 1, 2) }
        guard let colon = line.firstIndex(of: 0x3A) else { continue }
        let name = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: line[..<colon]))
        let value = UnsafeRawBufferPointer(UnsafeBufferPointer(rebasing: line[(colon + 1)...]))
        sections[section].append(nameBytes: name, valueBytes: value)
    }
    for rules in [StoringRules.shared, .private] {
        for status in [200, 206, 404] { exchange(sections, status, rules) }
    }
    return 0
}

private let now: Int64 = 784_111_777

private func exchange(_ sections: [FieldSection], _ status: Int, _ rules: StoringRules) {
    let request = RequestFacts(method: .get, fields: sections[0])
    let response = ResponseFacts(
        status: status,
        fields: sections[1],
        rules: rules,
        receivedAtSeconds: now
    )
    let decision = StoreDecision.decide(
        request: request,
        response: response,
        rules: rules,
        receivedAtSeconds: now
    )
    guard case .store(let lifetime) = decision else { return }
    let mayKeep =
        !response.directives.flags.contains(.noStore)
        || response.directives.flags.contains(.mustUnderstand)
    precondition(mayKeep)
    precondition(rules.mode == .private || !response.directives.flags.contains(.private))
    let facts = StoredFacts(
        response: response,
        lifetime: lifetime,
        rules: rules,
        requestTimeSeconds: now - 1,
        responseTimeSeconds: now
    )
    let stored = StoredFields.make(
        from: sections[1],
        response: response,
        rules: rules,
        receivedAtSeconds: now
    )
    precondition(stored.contains("Date") && !stored.contains("Connection"))
    reuse(stored, facts, sections, request, rules)
    if case .selecting(let vary) = Vary.read(sections[1]) {
        _ = VariantKey(vary, request: sections[0])
    }
}

private func reuse(
    _ stored: FieldSection,
    _ facts: StoredFacts,
    _ sections: [FieldSection],
    _ request: RequestFacts,
    _ rules: StoringRules
) {
    let reuse = ReuseDecision.decide(
        stored: facts,
        request: request,
        nowSeconds: now + 10,
        preferences: ReusePreferences()
    )
    if facts.flags.contains(.noCache) {
        switch reuse {
        case .serve, .serveStale, .serveStaleThenRevalidate: preconditionFailure()
        case .revalidate, .fetch, .gatewayTimeout: break
        }
    }
    var validation = sections[0]
    Conditional.makeConditionalFields(stored: stored, into: &validation)
    _ = Conditional.evaluateClientConditionals(
        request: sections[0],
        requestFacts: request,
        stored: stored,
        storedFacts: facts,
        nowSeconds: now
    )
    let fresh = Conditional.freshen(
        stored: stored,
        with304: sections[2],
        rules: rules,
        receivedAtSeconds: now + 5
    )
    precondition(fresh.values("Content-Length") == stored.values("Content-Length"))
}
