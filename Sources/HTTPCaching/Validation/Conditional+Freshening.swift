/// Bringing a stored response up to date with a 304 or with the answer to a HEAD
/// (RFC 9111 §3.2, §4.3.4, §4.3.5).
extension Conditional {
    /// The stored fields, each one that the new response has replaced by it (RFC 9111 §3.2).
    ///
    /// Kept as stored: fields of the connection, fields that say how the stored bytes are to be read
    /// (Content-Length, Content-Encoding, Content-Range), and fields that the directives keep out.
    /// Age goes with the old exchange, and Date becomes the time of the new one.
    package static func freshen(
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
        update.removeAll { describesStoredBytes($0) }
        var merged = stored
        merged.reserveCapacity(stored.bytes.count + update.bytes.count)
        merged.removeAll { $0.equals(lowercased: "age") || update.contains($0) }
        update.forEachLine { merged.append(name: $0.name, value: $0.value) }
        return merged
    }

    private static func describesStoredBytes(_ name: ByteRun) -> Bool {
        switch name.count {
        case 13: name.equals(lowercased: "content-range")
        case 14: name.equals(lowercased: "content-length")
        case 16: name.equals(lowercased: "content-encoding")
        default: false
        }
    }

    /// Whether a 304 speaks of this stored response (RFC 9111 §4.3.4): a strong tag must be the
    /// stored one; otherwise one of its weak validators must; with none at all it answers the
    /// question that was asked.
    package static func identifies(stored: FieldSection, with304 new: FieldSection) -> Bool {
        let tags = compareTags(stored, new)
        if tags == .strongDiffers { return false }
        if tags == .same { return true }
        let dates = compareDates(stored, new)
        if dates == .same { return true }
        return tags == .absent && dates == .absent
    }

    /// Whether the new fields select variants in another way than the stored ones: then the entry
    /// may no longer be found under the key it has, and must be replaced rather than freshened.
    package static func changesSelection(stored: FieldSection, with304 new: FieldSection) -> Bool {
        new.contains(lowercased: "vary") && Vary.read(new) != Vary.read(stored)
    }

    /// What the answer to a HEAD means for a stored response to GET (RFC 9111 §4.3.5).
    package enum HeadEffect: Hashable, Sendable {
        /// Update it, as with a 304.
        case freshens
        /// It is of another version: take it for stale.
        case invalidates
        /// The answer was not a 200.
        case nothing
    }

    package static func headFreshens(
        stored: FieldSection,
        storedBodySize: Int?,
        headStatus: Int,
        headFields: FieldSection
    ) -> HeadEffect {
        guard headStatus == 200 else { return .nothing }
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
        return .freshens
    }

    // MARK: - Comparing validators

    private enum Comparison { case absent, same, weakDiffers, strongDiffers }

    private static func compareTags(_ stored: FieldSection, _ new: FieldSection) -> Comparison {
        new.withFirst(lowercased: "etag") { newText -> Comparison in
            guard let newTag = EntityTag(newText) else { return .absent }
            let isSame = stored.withFirst(lowercased: "etag") { storedText -> Bool in
                guard let storedTag = EntityTag(storedText) else { return false }
                // Weakly: servers that weaken the tag of a compressed 200 leave it strong in the
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
