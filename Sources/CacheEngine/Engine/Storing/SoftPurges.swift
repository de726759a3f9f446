/// The keeper of soft purges: the disk, whose log holds them, or this process alone.
///
/// Each entry gets a number when it is stored, and so does each mark: an entry with a smaller number
/// than a mark that covers it was stored before it.
protocol SoftPurges: Sendable {
    /// The number of an entry that is stored now: later marks cover it.
    func entrySequence(for hash: KeyHash) -> UInt64

    /// Marks every entry that carries the tag and is stored by now.
    ///
    /// `whenMarked` is called once, before a device is waited for, also if that fails.
    func markStale(_ tag: String, whenMarked: () -> Void) async throws

    /// Marks every variant of the resource that is stored by now; the mark is durable once the last
    /// removal of the resource is.
    func markVariantsStale(of resource: KeyHash) throws

    /// Marks every entry that is stored by now: the origin must confirm it before its next use.
    ///
    /// `whenMarked` is called once, before a device is waited for, also if that fails.
    func markEverythingStale(whenMarked: () -> Void) async throws

    /// Whether a mark may cover the entry; takes no lock, and `false` is certain.
    func mayBeMarkedStale(_ entry: Entry) -> Bool

    /// Whether a mark covers the entry.
    func isMarkedStale(_ entry: Entry) -> Bool

    /// Whether a mark of everything covers the entry.
    func isDoubted(_ entry: Entry) -> Bool
}
