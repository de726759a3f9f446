/// A custom store as the tier behind the memory.
extension QueuedStore: BackingTier {
    func noteCertainMiss(_ hash: KeyHash) -> Bool { false }

    func find(
        _ key: RequestKey,
        withinSeconds seconds: Double?,
        mayRefuse: Bool
    ) async -> BackingFinding {
        let reading = replacements.ticket()
        guard let found = await entry(for: key.storeKey, withinSeconds: seconds) else {
            return .nothing
        }
        let hash = key.hash
        let source = BackingEntry.Source.store { [self] in
            replacements.isCurrent(hash, since: reading)
        }
        return .entry(BackingEntry(entry: found, source: source))
    }

    /// A look-up that failed proves nothing.
    var isLookUpConclusive: Bool { false }

    func accept(_ entry: Entry, body: DiskBody?) -> StoreOutcome {
        guard body == nil else { return .refused(.notAdmitted) }
        return accept(StoredEntry(entry))
    }

    func acceptRemoval(of key: StoreKey) -> Bool {
        queueRemoval(of: key)
        return false
    }

    var entriesOutliveMarks: Bool { true }
    var ordersRemovals: Bool { false }

    /// The store may be older than this process.
    var mayHoldOlderEntries: Bool { true }

    func ring(_ hash: KeyHash) { startWork() }

    var gatheredBytesMax: Int { Self.entryBytesMax }

    func hasRoom(entryBytes: Int, bodyBytes: Int) -> Bool { bodyBytes <= Self.entryBytesMax }

    /// An entry of the session class carries its session instead of its number.
    func staleSequence(of entry: Entry) -> UInt64 {
        let head = entry.head
        return head.storageClass == .session && head.sequence == session ? 0 : head.sequence
    }
}
