/// The entries of a log that is read page by page, from its front, while appends cut the front off.
///
/// Invariant: each entry follows the one before it in the log, so that none after the first is
/// missing.
struct LogPages: Sendable {
    private(set) var entries: [LogEntry] = []

    /// Adds the page that was read after the last one.
    ///
    /// If entries between the two have gone, those before them are dropped: what is known then
    /// begins after the gap.
    mutating func add(_ page: [LogEntry]) {
        let joins = entries.last?.position == page.first?.previous
        if !page.isEmpty, !joins, !Mutant.joinsPagesWithAGap.isOn { entries = [] }
        entries += page
    }
}
