/// Which stored responses a request makes invalid (RFC 9111 §4.4).
package enum Invalidation {
    /// The URIs whose stored responses must not be used again: after an unsafe request that
    /// succeeded or redirected, its target, and the targets of Location and Content-Location where
    /// they have the same origin.
    ///
    /// The first is always the request's own.
    ///
    /// What is no URI is left out; of a request whose own URI is none, that text alone is given.
    package static func targets(
        method: MethodKind,
        status: Int,
        requestURL: String,
        responseFields: FieldSection
    ) -> [String] {
        guard method.isUnsafe, (200...399).contains(status) else { return [] }
        guard let base = URIReference(requestURL) else { return [requestURL] }
        var targets = [base.target]
        for name in ["Location", "Content-Location"] {
            guard let text = responseFields.first(name),
                let reference = URIReference(text)
            else { continue }
            let resolved = reference.resolved(against: base)
            guard resolved.hasSameOrigin(as: base), !targets.contains(resolved.target) else {
                continue
            }
            targets.append(resolved.target)
        }
        return targets
    }

    /// RFC 9110 §9.3.3: whether the answer to a POST may answer a later GET of the same target:
    /// it is a success that says, by Content-Location, that it is the content of that target.
    package static func postMayAnswerGet(
        status: Int,
        requestURL: String,
        responseFields: FieldSection
    ) -> Bool {
        guard status == 200, let base = URIReference(requestURL),
            let text = responseFields.first("Content-Location"),
            let reference = URIReference(text)
        else { return false }
        return reference.resolved(against: base).target == base.target
    }
}
