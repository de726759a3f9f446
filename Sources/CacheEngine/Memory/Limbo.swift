import Synchronization

/// Entries that are in no table any more but may still be under a reader's eyes.
///
/// They are released together when enough have gathered, so that the wait for readers is shared.
/// Until then they count as used.
final class Limbo: Sendable {
    /// One reference each.
    ///
    /// `@unchecked Sendable`: owned by the mutex and touched only inside it.
    private struct State: @unchecked Sendable {
        var entries: [Unmanaged<ByteStorage>]
        var tables: [EntryTable] = []
        var chargeBytes = 0
    }

    static let entriesMax = 64
    private let state: OrderedMutex<State>
    private let usedBytes: UsedBytes

    init(usedBytes: UsedBytes) {
        self.usedBytes = usedBytes
        var entries: [Unmanaged<ByteStorage>] = []
        entries.reserveCapacity(Self.entriesMax)
        state = OrderedMutex(State(entries: entries))
    }

    deinit { flush() }

    /// Takes over the reference of an unlinked entry.
    func add(_ entry: Unmanaged<ByteStorage>, chargeBytes: Int) {
        let isFull = state.withLock { state in
            state.entries.append(entry)
            state.chargeBytes += chargeBytes
            return state.entries.count >= Self.entriesMax
                || state.chargeBytes > usedBytes.slackBytes
        }
        if isFull { flush() }
    }

    /// Takes over a table that was replaced.
    func add(_ table: EntryTable, chargeBytes: Int) {
        state.withLock { state in
            state.tables.append(table)
            state.chargeBytes += chargeBytes
        }
        flush()
    }

    /// Releases everything, once no reader can see it any more.
    func flush() {
        let taken = state.withLock { state in
            let taken = state
            state.entries = []
            state.entries.reserveCapacity(Self.entriesMax)
            state.tables = []
            state.chargeBytes = 0
            return taken
        }
        guard !taken.entries.isEmpty || !taken.tables.isEmpty else { return }
        ReaderGate.waitForReaders()
        for entry in taken.entries { entry.release() }
        for table in taken.tables { table.deallocate() }
        usedBytes.giveBack(taken.chargeBytes)
    }
}

/// The one budget of all shards.
///
/// Invariant: the bytes in use never exceed the capacity while it stays the same; when it shrinks,
/// `setCapacity` gets there before it returns.
final class UsedBytes: Sendable {
    private let used = Atomic(0)
    private let shared: SharedPolicyState

    init(_ shared: SharedPolicyState) { self.shared = shared }

    var current: Int { used.load(ordering: .relaxed) }
    var capacity: Int { shared.capacityBytes.load(ordering: .relaxed) }

    /// What may lie unlinked but unreleased before a writer waits for readers.
    var slackBytes: Int { min(capacity / 256, 1 << 20) }

    /// How far over the capacity the bytes in use would be with `bytes` more.
    func excess(with bytes: Int) -> Int { current + bytes - capacity }

    /// Takes `bytes` if they fit.
    func take(_ bytes: Int) -> Bool {
        var now = used.load(ordering: .relaxed)
        while now + bytes <= capacity {
            let (done, current) = used.compareExchange(
                expected: now,
                desired: now + bytes,
                ordering: .relaxed
            )
            if done { return true }
            now = current
        }
        return false
    }

    /// Takes `bytes` whether they fit or not, for what a memory cannot be without.
    func takeAnyway(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    func giveBack(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }
}
