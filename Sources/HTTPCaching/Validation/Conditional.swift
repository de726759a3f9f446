/// Validation of a stored response (RFC 9111 §4.3), and evaluation of the same conditions on one.
public enum Conditional {
    /// Removes the client's own conditions and ranges.
    public static func removeConditions(from request: inout FieldSection) {
        request.removeAll { isPrecondition($0) || $0.equals(lowercased: "range") }
    }

    /// The validators of the stored response that a request carries.
    public enum Validators: UInt8, Hashable, Sendable {
        /// The entity tag and the date, for origins that evaluate only one of them.
        case all
        case strongestOnly
    }

    /// Turns `request` into one that validates the whole stored response (RFC 9111 §4.3.1).
    ///
    /// The client's own conditions and ranges are removed first: the response must be a 304 about
    /// the stored response, or a complete new response.
    ///
    /// - Returns: Whether the stored response has a validator.
    @discardableResult
    public static func makeConditionalFields(
        stored: FieldSection,
        into request: inout FieldSection,
        validators: Validators = .all
    ) -> Bool {
        removeConditions(from: &request)
        var isConditional =
            stored.withFirst(lowercased: "etag") { text -> Bool in
                guard EntityTag(text) != nil else { return false }
                return "If-None-Match".withByteRun { request.append(name: $0, value: text) }
            } ?? false
        if isConditional, validators == .strongestOnly { return true }
        let hasDate =
            stored.withFirst(lowercased: "last-modified") { text -> Bool in
                // The value is sent unchanged, so the reference year of the parser does not matter.
                guard HTTPDate.parse(text, nearSeconds: 0) != nil else { return false }
                return "If-Modified-Since".withByteRun { request.append(name: $0, value: text) }
            } ?? false
        isConditional = isConditional || hasDate
        return isConditional
    }

    /// Turns `request` into one for the missing part of a stored partial response.
    ///
    /// It gets `Range`, and `If-Range` with the strong validator: if the version changed, the
    /// origin sends the whole representation.
    ///
    /// - Returns: `false`, without a change, if the stored response has no strong validator.
    @discardableResult
    public static func makeRangeFields(
        stored: FieldSection,
        storedFacts: StoredFacts,
        missing: Range<Int>,
        into request: inout FieldSection
    ) -> Bool {
        precondition(!missing.isEmpty)
        guard let validator = rangeValidator(stored, storedFacts) else { return false }
        removeConditions(from: &request)
        request.append("Range", "bytes=\(missing.lowerBound)-\(missing.upperBound - 1)")
        return request.append("If-Range", validator)
    }

    /// The strong tag, or the date if there is no tag (RFC 9110 §13.1.5).
    static func rangeValidator(_ stored: FieldSection, _ facts: StoredFacts) -> String? {
        guard facts.flags.contains(.hasStrongValidator) else { return nil }
        let tag = stored.withFirst(lowercased: "etag") { text -> String? in
            guard let tag = EntityTag(text), tag.isStrong else { return nil }
            return text.trimmed.string
        }
        if let tag { return tag }
        guard facts.flags.contains(.hasStrongDate) else { return nil }
        return facts.lastModifiedSeconds.map { HTTPDate.string($0) }
    }

    private static func isPrecondition(_ name: ByteRun) -> Bool {
        switch name.count {
        case 8: name.equals(lowercased: "if-match") || name.equals(lowercased: "if-range")
        case 13: name.equals(lowercased: "if-none-match")
        case 17: name.equals(lowercased: "if-modified-since")
        case 19: name.equals(lowercased: "if-unmodified-since")
        default: false
        }
    }
}
