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
    private let state: Mutex<State>
    /// Held by the one who waits for readers and releases.
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
        let isFull = state.withLock { state in
            state.entries.append(entry)
            state.chargeBytes += chargeBytes
            usedBytes.notePending(chargeBytes)
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
            usedBytes.notePending(chargeBytes)
        }
        flush()
    }

    /// Releases everything, once no reader can see it any more.
    ///
    /// When it returns, all that lay in limbo before the call has been given back, by whomever.
    func flush() { turn.withLock { _ in release() } }

    private func release() {
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
        usedBytes.givePendingBack(taken.chargeBytes)
    }
}

/// The one budget of all shards.
///
/// Invariant: the bytes in use never exceed the capacity while it stays the same; when it shrinks,
/// `setCapacity` gets there before it returns.
final class UsedBytes: Sendable {
    private let used = Atomic(0)
    /// The part of them that lies in limbo.
    private let pending = Atomic(0)
    private let shared: SharedPolicyState

    init(_ shared: SharedPolicyState) { self.shared = shared }

    var current: Int { used.load(ordering: .relaxed) }
    var capacity: Int { shared.capacityBytes.load(ordering: .relaxed) }

    /// What may lie unlinked but unreleased before a writer waits for readers.
    var slackBytes: Int { min(capacity / 256, 1 << 20) }

    /// How much would have to leave the tables for `bytes` more.
    func excess(with bytes: Int) -> Int {
        current - pending.load(ordering: .relaxed) + bytes - capacity
    }

    /// What came of asking for bytes.
    enum Taking {
        case taken
        /// There will be room once the limbo is released.
        case mustRelease
        /// Something in a table has to go.
        case mustEvict
    }

    /// Takes `bytes` if they fit.
    ///
    /// What lies in limbo has been given up already, and is no reason to evict more.
    func take(_ bytes: Int) -> Taking {
        var now = used.load(ordering: .relaxed)
        while true {
            if now - pending.load(ordering: .relaxed) + bytes > linkedBytesMax(for: bytes) {
                return .mustEvict
            }
            guard now + bytes <= capacity else { return .mustRelease }
            let (done, current) = used.compareExchange(
                expected: now,
                desired: now + bytes,
                ordering: .relaxed
            )
            if done { return .taken }
            now = current
        }
    }

    /// Takes `bytes` whether they fit or not, for what a memory cannot be without.
    func takeAnyway(_ bytes: Int) { used.add(bytes, ordering: .relaxed) }

    func giveBack(_ bytes: Int) { used.subtract(bytes, ordering: .relaxed) }

    /// `bytes` of those in use have left their table and will be given back.
    func notePending(_ bytes: Int) { pending.add(bytes, ordering: .relaxed) }

    func givePendingBack(_ bytes: Int) {
        used.subtract(bytes, ordering: .relaxed)
        pending.subtract(bytes, ordering: .relaxed)
    }

    /// How much the tables may hold once `bytes` more are in them.
    ///
    /// Small entries leave room for a limbo in which several gather. Where one entry would fill
    /// that room it would gain nothing.
    private func linkedBytesMax(for bytes: Int) -> Int {
        bytes <= slackBytes ? capacity - slackBytes : capacity
    }
}
