/// The purges that the log has lost, until it has taken them again.
///
///     owed ──next──▶ under way ──taken──▶ taken ──takeTaken──▶ forgotten
///     ▲  │                │                                        ▲
///     │  └────────────────┼──read: another machine was first───────┘
///     └──────failed───────┘
///
/// A pure value. The reader goes on while a batch is under way, so it may read purges of the batch back
/// before the writer has its reply.
///
/// Invariant: a purge is owed, under way or taken, and once.
struct LostPurges: Sendable {
    private var owed: [FleetPurge] = []
    private var underWay: [FleetPurge] = []
    /// The log has taken them since the reader asked last.
    private var taken: [FleetPurge] = []
    /// Those under way or taken that the reader has read.
    private var readBack: Set<FleetPurge.ID> = []

    var isEmpty: Bool { owed.isEmpty && underWay.isEmpty }

    /// The log has lost purges; returns those that are not known here yet.
    mutating func add(_ purges: [FleetPurge]) -> [FleetPurge] {
        // The log had these once more, and has lost them again.
        if !Mutant.forgetsWhatIsLostAgain.isOn {
            for purge in purges { readBack.remove(purge.id) }
        }
        let known = Set((owed + underWay + taken).map(\.id))
        let new = purges.filter { !known.contains($0.id) }
        owed += new
        return new
    }

    /// The next batch to append; `nil` if no purge is owed, or a batch is under way.
    mutating func next() -> [FleetPurge]? {
        guard underWay.isEmpty, !owed.isEmpty else { return nil }
        underWay = Array(owed.prefix(PurgeLogWriter.batchCountMax))
        owed.removeFirst(underWay.count)
        return underWay
    }

    /// The log has taken the batch.
    mutating func noteTaken() {
        taken += underWay
        underWay = []
    }

    /// The log may not have taken the batch.
    mutating func noteFailure() {
        for purge in underWay { readBack.remove(purge.id) }
        owed = underWay + owed
        underWay = []
    }

    /// The reader has read these entries; returns those of purges that were owed, which another machine
    /// has appended.
    mutating func note(_ entries: [LogEntry]) -> [LogEntry] {
        let ids = Set(entries.compactMap { $0.purge?.id })
        for purge in underWay + taken where ids.contains(purge.id) { readBack.insert(purge.id) }
        let others = Set(owed.lazy.map(\.id).filter { ids.contains($0) })
        guard !others.isEmpty, !Mutant.appendsWhatOthersHave.isOn else { return [] }
        owed.removeAll { others.contains($0.id) }
        return entries.filter { $0.purge.map { others.contains($0.id) } ?? false }
    }

    /// Takes the purges that the log has taken and the reader has not read; called before the reader
    /// asks.
    ///
    /// If they are not in the log once it is read to its end, the log has lost them again.
    mutating func takeTaken() -> [FleetPurge] {
        let all = taken
        taken = []
        return all.filter { readBack.remove($0.id) == nil }
    }
}
