/// Validation (RFC 9111 §4.3): asking whether a stored response is still current, and answering the
/// same question from it.
package enum Conditional {
    /// Which validators of the stored response a request carries.
    package enum Validators: UInt8, Hashable, Sendable {
        /// The entity tag and the date, for origins that know only one of them.
        case all
        case strongestOnly
    }

    /// Turns `request` into one that validates the whole stored response (RFC 9111 §4.3.1).
    ///
    /// The client's own conditions and ranges are taken out first: the answer must be either "not
    /// modified" about what is stored here, or a whole new response.
    ///
    /// - Returns: whether there was a validator to ask with.
    @discardableResult
    package static func makeConditionalFields(
        stored: FieldSection,
        into request: inout FieldSection,
        validators: Validators = .all
    ) -> Bool {
        request.removeAll { isPrecondition($0) || $0.equals(lowercased: "range") }
        var isConditional =
            stored.withFirst(lowercased: "etag") { text -> Bool in
                guard EntityTag(text) != nil else { return false }
                return "If-None-Match".withByteRun { request.append(name: $0, value: text) }
            } ?? false
        if isConditional, validators == .strongestOnly { return true }
        let hasDate =
            stored.withFirst(lowercased: "last-modified") { text -> Bool in
                // The value goes out as it came in, so the year of the comparison does not matter here.
                guard HTTPDate.parse(text, nearSeconds: 0) != nil else { return false }
                return "If-Modified-Since".withByteRun { request.append(name: $0, value: text) }
            } ?? false
        isConditional = isConditional || hasDate
        return isConditional
    }

    /// Turns `request` into one for the missing part of a stored partial response: `Range`, and
    /// `If-Range` with the strong validator, so that another version comes whole.
    ///
    /// - Returns: false when the stored response has no strong validator; then nothing is changed.
    @discardableResult
    package static func makeRangeFields(
        stored: FieldSection,
        storedFacts: StoredFacts,
        missing: Range<Int>,
        into request: inout FieldSection
    ) -> Bool {
        precondition(!missing.isEmpty)
        guard let validator = rangeValidator(stored, storedFacts) else { return false }
        request.removeAll { isPrecondition($0) || $0.equals(lowercased: "range") }
        request.append("Range", "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)")
        return request.append("If-Range", validator)
    }

    private static func rangeValidator(_ stored: FieldSection, _ facts: StoredFacts) -> String? {
        guard facts.flags.contains(.hasStrongValidator) else { return nil }
        let tag = stored.withFirst(lowercased: "etag") { text -> String? in
            guard let tag = EntityTag(text), tag.isStrong else { return nil }
            return text.trimmed.string
        }
        if case .some(.some(let tag)) = tag { return tag }
        return facts.lastModifiedSeconds.map { HTTPDate.string($0) }
    }

    static func isPrecondition(_ name: ByteRun) -> Bool {
        switch name.count {
        case 8: name.equals(lowercased: "if-match") || name.equals(lowercased: "if-range")
        case 13: name.equals(lowercased: "if-none-match")
        case 17: name.equals(lowercased: "if-modified-since")
        case 19: name.equals(lowercased: "if-unmodified-since")
        default: false
        }
    }
}
