import HTTPCaching

/// The tags that responses name in their own fields.
extension CachingRules {
    /// The tags in `fields`, separated by comma or space; `nil` if there are too many.
    ///
    /// An entry must be found by each of its tags, or it could not be purged by them.
    func tags(in fields: FieldSection) -> [String]? {
        var tags: [String] = []
        for name in tagFields {
            for line in fields.values(name) {
                for tag in line.split(whereSeparator: { $0 == "," || $0 == " " }) {
                    guard tags.count < maximumTags else { return nil }
                    tags.append(String(tag))
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
        let before = Set(tags(in: stored.fields()) ?? [])
        let all = stored.entry.withTags { TagList(encoded: $0).tags }
        return TagList(named + all.filter { !before.contains($0) && !named.contains($0) })
    }
}
