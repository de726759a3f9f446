import Synchronization

/// Entries and tables that have left their place but may still have a reader.
///
/// They are released in batches, so that one wait for readers serves all of them. Until then they
/// count as used.
final class RetiredEntries: Sendable {
    /// One reference for each entry.
    ///
    /// `@unchecked Sendable`: owned by the mutex and touched only inside it.
    private struct State: @unchecked Sendable {
        var entries: [Unmanaged<ByteStorage>]
        var tables: [EntryTable] = []
        var chargeBytes = 0

        /// The sum of what the entries and tables are charged for; O(n).
        var partsBytes: Int {
            entries.reduce(0) { $0 + Entry(unchecked: $1.takeUnretainedValue()).chargeBytes }
                + tables.reduce(0) {
                    $0 + MemoryShardState.sizeBytes(bucketCount: $1.bucketCount)
                }
        }
    }

    private static let entriesMax = 64
    private let state: Mutex<State>
    /// Held by the thread that waits for readers and releases.
    private let turn = Mutex<Void>(())
    private let usedBytes: UsedBytes

    init(usedBytes: UsedBytes) {
        self.usedBytes = usedBytes
        var entries: [Unmanaged<ByteStorage>] = []
        entries.reserveCapacity(Self.entriesMax)
        state = Mutex(State(entries: entries))
    }

    deinit { flush() }

    /// Takes over the reference of an unlinked entry.
    func add(_ entry: Unmanaged<ByteStorage>, chargeBytes: Int) {
        ReaderGate.requireOutside()
        let isFull = state.withLock { state in
            state.entries.append(entry)
            return count(chargeBytes, in: &state)
        }
        if isFull { flush() }
    }

    /// Takes over the references of a batch.
    func add(_ batch: UnlinkedBatch) {
        ReaderGate.requireOutside()
        let isFull = state.withLock { state in
            state.entries.append(contentsOf: batch.references)
            return count(batch.chargeBytes, in: &state)
        }
        if isFull { flush() }
    }

    /// Takes over a table that was replaced.
    func add(_ table: EntryTable, chargeBytes: Int) {
        state.withLock { state in
            state.tables.append(table)
            _ = count(chargeBytes, in: &state)
        }
        flush()
    }

    /// Releases everything that was added before the call, once no reader can see it.
    ///
    /// Another thread may do the work. Either way the bytes are given back before this returns.
    func flush() {
        ReaderGate.requireOutside()
        turn.withLock { _ in release() }
    }

    /// Counts bytes that were just added.
    ///
    /// Returns `true` if a release is due.
    private func count(_ chargeBytes: Int, in state: inout State) -> Bool {
        state.chargeBytes += chargeBytes
        usedBytes.notePending(chargeBytes)
        return state.entries.count >= Self.entriesMax
            || state.chargeBytes > usedBytes.slackBytes
    }

    private func release() {
        let taken = state.withLock { state in
            let taken = state
            state.entries = []
            state.entries.reserveCapacity(Self.entriesMax)
            state.tables = []
            state.chargeBytes = 0
            return taken
        }
        assert(taken.chargeBytes == taken.partsBytes, "the sum of the parts")
        guard !taken.entries.isEmpty || !taken.tables.isEmpty else { return }
        ReaderGate.waitForReaders()
        for entry in taken.entries { entry.release() }
        for table in taken.tables { table.deallocate() }
        usedBytes.givePendingBack(taken.chargeBytes)
    }
}
