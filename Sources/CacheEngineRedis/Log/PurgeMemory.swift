/// The newest entries that this machine has read, in their order.
///
/// They find the place where a log that lost its end still agrees with this machine, and are
/// appended again if the log has lost them.
///
/// Invariant: `ids` has the identities of the purges in `entries`.
struct PurgeMemory: Sendable {
    private let countMax: Int
    private let bytesMax: Int
    private var entries: [LogEntry] = []
    private var head = 0
    private var bytes = 0
    private var ids: [FleetPurge.ID: Int] = [:]

    init(countMax: Int = 65_536, bytesMax: Int = 16 << 20) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    /// The entries, the oldest first.
    var all: ArraySlice<LogEntry> { entries[head...] }

    func contains(_ id: FleetPurge.ID) -> Bool { ids[id] != nil }

    mutating func add(_ entry: LogEntry) {
        entries.append(entry)
        bytes += Self.size(entry)
        if let id = entry.purge?.id { ids[id, default: 0] += 1 }
        while entries.count - head > countMax || (bytes > bytesMax && entries.count - head > 1) {
            removeFirst()
        }
        if head > 1_024, head > entries.count / 2 {
            entries.removeSubrange(..<head)
            head = 0
        }
    }

    private mutating func removeFirst() {
        let first = entries[head]
        head += 1
        bytes -= Self.size(first)
        guard let id = first.purge?.id, let count = ids[id] else { return }
        ids[id] = count > 1 ? count - 1 : nil
    }

    private static func size(_ entry: LogEntry) -> Int {
        entry.purge?.sizeBytes ?? FleetPurge.fixedBytes
    }
}
