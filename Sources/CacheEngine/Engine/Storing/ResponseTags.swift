import HTTPCaching

/// The tags that responses name in their own fields.
extension CachingRules {
    /// The tags that one line names, whichever field it belongs to.
    ///
    /// Responses and purges are both read here, so that a purge by what a response says finds it.
    /// Bytes are compared: a separator may be followed by a combining character.
    package static func tagNames(in line: String) -> [String] {
        line.utf8.split { $0 == 0x2C || $0 == 0x20 || $0 == 0x09 }.map { String(Substring($0)) }
    }

    /// The tags in `fields`; `nil` if there are too many.
    ///
    /// An entry must be found by each of its tags, or it could not be purged by them.
    func tags(in fields: FieldSection) -> [String]? {
        var tags: [String] = []
        let names = fields.nameSketch
        for name in tagFields where names.mayInclude(name) {
            for line in fields.values(name) {
                for tag in Self.tagNames(in: line) {
                    guard tags.count < maximumTags else { return nil }
                    tags.append(tag)
                }
            }
        }
        return TagList(tags) == nil ? nil : tags
    }

    /// The tags of a stored response that was confirmed with `fields`; `nil` if there are too many.
    ///
    /// Tags that its old fields did not name are the application's own, and are kept.
    func renewedTags(of stored: StoredResponse, _ fields: FieldSection) -> TagList? {
        guard let named = tags(in: fields) else { return nil }
        let before = tags(in: stored.fields()) ?? []
        let all = stored.entry.withTags { TagList(encoded: $0).tags }
        return TagList(named + TagList.tags(all, without: before + named))
    }
}
