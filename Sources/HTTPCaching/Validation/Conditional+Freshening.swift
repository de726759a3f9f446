/// Update of a stored response by a 304 or a response to HEAD (RFC 9111 §3.2, §4.3.4, §4.3.5).
extension Conditional {
    /// The stored fields, updated by the fields of the new response (RFC 9111 §3.2).
    ///
    /// These stay as stored: fields of the connection, fields that describe the stored bytes
    /// (Content-Length, Content-Encoding, Content-Range, Content-Digest), fields that directives
    /// exclude, and a weak tag of which the new response has the strong form. The stored Age is
    /// removed, and Date becomes that of the new response.
    public static func freshen(
        stored: FieldSection,
        with304 new: FieldSection,
        rules: StoringRules,
        receivedAtSeconds: Int64
    ) -> FieldSection {
        let facts = ResponseFacts(
            status: 304,
            fields: new,
            rules: rules,
            receivedAtSeconds: receivedAtSeconds
        )
        var update = StoredFields.make(
            from: new,
            response: facts,
            rules: rules,
            receivedAtSeconds: receivedAtSeconds
        )
        update.removeAll { describesStoredBytes($0) && !Mutant.freshensContentLength.isOn }
        // A server that weakens the tag of a compressed body confirms it by the strong form.
        if isStrongForm(of: stored, update) { update.remove(lowercased: "etag") }
        var merged = stored
        merged.reserveCapacity(stored.bytes.count + update.bytes.count)
        merged.removeAll { $0.equals(lowercased: "age") || update.contains($0) }
        update.forEachLine { merged.append(name: $0.name, value: $0.value) }
        return merged
    }

    /// The fields of a confirming response that the confirmed one is stored without, because of its
    /// directives or of the policy for cookies.
    ///
    /// RFC 9111 §7.3, §5.2.2.4 and §5.2.2.7 forbid to store them, not to deliver them to the client
    /// whose request was sent.
    public static func unstoredFields(
        of new: FieldSection,
        confirming stored: FieldSection,
        rules: StoringRules
    ) -> FieldSection {
        let facts = ResponseFacts(
            status: 200,
            fields: stored,
            rules: rules,
            receivedAtSeconds: 0
        )
        let omitted = OmittedFields(stored, response: facts, rules: rules)
        var lines = HopByHop.strip(new, for: .forwardingResponse)
        // The cache writes Age itself.
        lines.removeAll {
            !omitted.contains($0) || describesStoredBytes($0) || $0.equals(lowercased: "age")
        }
        return lines
    }

    private static func describesStoredBytes(_ name: ByteRun) -> Bool {
        switch name.count {
        case 13: name.equals(lowercased: "content-range")
        // RFC 9530 appendix B.2: the digest of a response without content is that of no bytes.
        case 14:
            name.equals(lowercased: "content-length") || name.equals(lowercased: "content-digest")
        case 16: name.equals(lowercased: "content-encoding")
        default: false
        }
    }

    /// Whether the new tag is strong, and the stored one weak with the same text.
    private static func isStrongForm(of stored: FieldSection, _ new: FieldSection) -> Bool {
        new.withFirst(lowercased: "etag") { newText -> Bool in
            guard let newTag = EntityTag(newText), newTag.form == .strong else { return false }
            return stored.withFirst(lowercased: "etag") { storedText -> Bool in
                guard let storedTag = EntityTag(storedText) else { return false }
                return storedTag.form == .weak && storedTag.weaklyEquals(newTag)
            } ?? false
        } ?? false
    }

    /// Whether a 304 confirms this stored response (RFC 9111 §4.3.4).
    ///
    /// Tags are compared weakly (`compareTags`). A strong tag must match the stored one. Otherwise a
    /// weak tag or the date must match. A 304 without validators confirms the response that the
    /// request named.
    public static func identifies(stored: FieldSection, with304 new: FieldSection) -> Bool {
        let tags = compareTags(stored, new)
        if Mutant.believesAny304.isOn { return true }
        if tags == .strongDiffers { return false }
        if tags == .same { return true }
        let dates = compareDates(stored, new)
        if dates == .same { return true }
        return tags == .absent && dates == .absent
    }

    /// Whether the new fields select variants differently.
    ///
    /// The entry would be found by requests that do not select it, so it must be replaced, not
    /// freshened.
    public static func changesSelection(stored: FieldSection, with304 new: FieldSection) -> Bool {
        new.contains(lowercased: "vary") && Vary.read(new) != Vary.read(stored)
    }

    /// The effect of a 304, or of a response to HEAD (RFC 9111 §4.3.5), on a stored response to GET.
    public enum BodilessEffect: Hashable, Sendable {
        /// It updates the stored response.
        case freshens
        /// The version, the status or the selecting fields differ: the stored response counts as
        /// stale.
        case invalidates
        /// It does not tell about this version: of HEAD the status is not 200, or the validator that
        /// identifies the version is missing.
        case nothing
    }

    public static func headFreshens(
        stored: FieldSection,
        storedStatus: Int,
        storedBodySize: Int?,
        headStatus: Int,
        headFields: FieldSection
    ) -> BodilessEffect {
        guard headStatus == 200 else { return .nothing }
        guard storedStatus == 200 || Mutant.freshensErrorsByHead.isOn,
            !changesSelection(stored: stored, with304: headFields)
        else { return .invalidates }
        let tags = compareTags(stored, headFields)
        let dates = compareDates(stored, headFields)
        guard tags == .same || tags == .absent, dates == .same || dates == .absent else {
            return .invalidates
        }
        let facts = ResponseFacts(
            status: 200,
            fields: headFields,
            targets: [],
            receivedAtSeconds: 0
        )
        if facts.flags.contains(.hasInvalidContentLength) { return .invalidates }
        if let length = facts.contentLength, let storedBodySize, length != storedBodySize {
            return .invalidates
        }
        // RFC 9111 §4.3.5 accepts a response without validators. Such a response does not identify
        // the version, so this cache requires it to repeat the strongest stored validator; if none
        // is stored, no response to HEAD freshens (decision 0014).
        let isConfirmed = stored.contains(lowercased: "etag") ? tags == .same : dates == .same
        return isConfirmed ? .freshens : .nothing
    }

    /// Whether a response belongs to another version of the resource than the stored one.
    public static func tellsOfAnotherVersion(stored: FieldSection, new: FieldSection) -> Bool {
        switch compareTags(stored, new) {
        case .same: false
        case .weakDiffers, .strongDiffers: true
        case .absent: compareDates(stored, new) == .weakDiffers
        }
    }

    // MARK: - Comparing validators

    private enum Comparison { case absent, same, weakDiffers, strongDiffers }

    private static func compareTags(_ stored: FieldSection, _ new: FieldSection) -> Comparison {
        new.withFirst(lowercased: "etag") { newText -> Comparison in
            guard let newTag = EntityTag(newText) else { return .absent }
            let isSame = stored.withFirst(lowercased: "etag") { storedText -> Bool in
                guard let storedTag = EntityTag(storedText) else { return false }
                // Weakly: a server that weakens the tag of a compressed 200 keeps it strong in the
                // 304 that confirms it.
                return newTag.weaklyEquals(storedTag)
            }
            if isSame == true { return .same }
            return newTag.isStrong ? .strongDiffers : .weakDiffers
        } ?? .absent
    }

    private static func compareDates(_ stored: FieldSection, _ new: FieldSection) -> Comparison {
        new.withFirst(lowercased: "last-modified") { newText -> Comparison in
            guard let newDate = HTTPDate.parse(newText, nearSeconds: 0) else { return .absent }
            let storedDate = stored.withFirst(lowercased: "last-modified") {
                HTTPDate.parse($0, nearSeconds: 0)
            }
            return storedDate == .some(.some(newDate)) ? .same : .weakDiffers
        } ?? .absent
    }
}
