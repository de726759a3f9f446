/// The entries that a purge concerns.
public enum PurgeTarget: Sendable {
    /// All stored variants of the request's resource.
    case request(CacheRequest)
    /// The entries that carry the tag.
    case tag(String)
    /// Every entry.
    case everything
}

/// The moment at which a purge is answered.
public enum PurgeWait: String, Hashable, Sendable, CaseIterable {
    /// The log has taken the purge; the other machines apply it within milliseconds.
    case log
    /// The machines that read the log have applied the purge, or five seconds have passed.
    case fleet
}
