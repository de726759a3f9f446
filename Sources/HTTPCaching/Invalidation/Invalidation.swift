/// The stored responses that a request invalidates (RFC 9111 §4.4).
public enum Invalidation {
    /// The URIs whose stored responses must not be used again.
    ///
    /// Returns `[]` unless the method is unsafe and the status is 2xx or 3xx. Otherwise the first
    /// URI is the request's own. Location and Content-Location follow if they have the same origin.
    ///
    /// A text that is not a valid URI is left out. If the request's own URI is invalid, the result
    /// is that text alone.
    public static func targets(
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
            guard resolved.hasSameOrigin(as: base),
                !targets.contains(where: { isSameURL($0, resolved.target) })
            else { continue }
            targets.append(resolved.target)
        }
        return targets
    }

    /// Whether the response to a POST may answer a later GET of the same target (RFC 9110 §9.3.3).
    ///
    /// It may if it has status 200 and a Content-Location that names that target.
    public static func postMayAnswerGet(
        status: Int,
        requestURL: String,
        responseFields: FieldSection
    ) -> Bool {
        guard status == 200, let base = URIReference(requestURL),
            let text = responseFields.first("Content-Location"),
            let reference = URIReference(text)
        else { return false }
        return isSameURL(reference.resolved(against: base).target, base.target)
    }

    /// Compares bytes, as keys do: two spellings that Unicode calls equal are two URLs.
    private static func isSameURL(_ first: String, _ second: String) -> Bool {
        first.utf8.elementsEqual(second.utf8)
    }
}
