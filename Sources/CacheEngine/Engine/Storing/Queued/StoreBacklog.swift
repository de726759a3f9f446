/// The queued operations of a custom store, and the keys that must not be read from it meanwhile.
///
/// At most one operation of a key is under way, and one waits:
///
///     waiting ──start──▶ running ──done──▶ forgotten
///                          │ └─failed──▶ waiting (a removal, later): the key is barred
///                          └─lost──▶ running, past its limit ──returned──▶ waiting (a removal)
///
/// A pure value: it calls no store and reads no clock.
///
/// Invariants:
/// 1. A key is in `ready` exactly if its record is marked so; then an operation waits and none
///    runs.
/// 2. A key whose operation failed or was lost stays barred until a later one has succeeded.
/// 3. `queuedBytes` is the size of the entries of all operations, waiting and running.
struct StoreBacklog {
    let limits: StoreLimits
    /// The callers to tell, outside the lock.
    private var told: [Told] = []
    private var hasBarredEverything = false
    private(set) var records: [KeyHash: Record] = [:]
    var bars: ScopeBars
    private(set) var queuedBytes = 0
    private(set) var barredCount = 0
    /// Operations under way within their limit.
    private(set) var runningCount = 0
    private var ready: [KeyHash] = []
    private var head = 0
    private var number: UInt64 = 0
    /// The time at which the first postponed operation is due.
    private(set) var firstDueNanoseconds = UInt64.max

    init(limits: StoreLimits) {
        self.limits = limits
        bars = ScopeBars(limits: limits)
    }

    /// The number of removals that the store still owes.
    var owedCount: Int { barredCount + bars.owedCount }

    /// The waiters to tell, and whether everything has been barred; each is returned once.
    mutating func takeNews() -> (told: [Told], isBarred: Bool) {
        guard !told.isEmpty || hasBarredEverything else { return ([], false) }
        defer {
            told = []
            hasBarredEverything = false
        }
        return (told, hasBarredEverything)
    }

    // MARK: Adding

    /// Queues the entry; the caller must release the operation that it replaces.
    mutating func store(_ entry: StoredEntry) -> (StoreOutcome, replaced: Operation?) {
        guard !bars.owesEverything else {
            return (.refused(.deviceFailed), remove(entry.key))
        }
        guard queuedBytes + entry.entry.sizeBytes <= limits.maximumQueuedSize.bytes else {
            return (.refused(.queueFull), remove(entry.key))
        }
        // A call of the key is past its limit: operations queued after it may never be carried out.
        if records[entry.key.hash]?.isLost == true {
            return (.refused(.deviceFailed), remove(entry.key))
        }
        guard takeRoom(for: entry.key.hash) else { return (.refused(.queueFull), nil) }
        return (.stored, add(.store(entry), entry.key))
    }

    /// Queues the removal of a key, unless the whole store is barred; the caller must release the
    /// operation that it replaces.
    mutating func remove(_ key: StoreKey) -> Operation? {
        if bars.owesEverything, records[key.hash] == nil { return nil }
        guard takeRoom(for: key.hash) else { return nil }
        return add(.remove(key), key)
    }

    /// Whether the key may wait; if not, the whole store is barred, because a removal that is not
    /// queued must still hold.
    private mutating func takeRoom(for hash: KeyHash) -> Bool {
        if records.count < limits.maximumQueuedKeys || records[hash] != nil { return true }
        barEverything()
        return false
    }

    /// Queues an operation; returns the one that it replaces.
    private mutating func add(_ operation: Operation, _ key: StoreKey) -> Operation? {
        number += 1
        queuedBytes += operation.queuedBytes
        var record = records.removeValue(forKey: key.hash) ?? Record(key: key)
        let replaced = record.waiting?.operation
        queuedBytes -= replaced?.queuedBytes ?? 0
        assert(queuedBytes >= operation.queuedBytes, "3: each operation is counted once")
        record.waiting = Numbered(operation: operation, number: number)
        record.dueNanoseconds = 0
        makeReady(&record)
        records[key.hash] = record
        return replaced
    }

    private mutating func makeReady(_ record: inout Record) {
        guard !record.isReady, record.running == nil, record.waiting != nil else { return }
        record.isReady = true
        ready.append(record.key.hash)
    }

    // MARK: Waiting

    /// Tells `settlement` when the last operation of the key is over.
    mutating func watchLast(_ hash: KeyHash, _ settlement: Settlement) {
        guard let record = records[hash], let last = record.waiting ?? record.running else {
            return told.append(Told(settlement: settlement, error: nil))
        }
        guard !record.isPutOff else {
            let error = record.lastError ?? CacheError.storeLate
            return told.append(Told(settlement: settlement, error: error))
        }
        watch(hash, number: last.number, settlement)
    }

    /// Tells `settlement` when the operation with that number, or a later one of the key, is over.
    mutating func watch(_ hash: KeyHash, number: UInt64, _ settlement: Settlement) {
        guard let record = records[hash], !record.isLost else {
            // The operation waits for a call that may never return.
            return told.append(Told(settlement: settlement, error: CacheError.storeLate))
        }
        records[hash]?.watchers.append((number, settlement))
    }

    /// The keys whose operations have not been tried yet.
    var untried: [(hash: KeyHash, number: UInt64)] {
        records.compactMap { hash, record in
            guard !record.isLost else { return nil }
            if let waiting = record.waiting {
                return record.isReady || record.running != nil ? (hash, waiting.number) : nil
            }
            return record.running.map { (hash, $0.number) }
        }
    }

    // MARK: Carrying out

    /// Takes an operation to carry out, while fewer than the limit are under way.
    mutating func next() -> Start? {
        guard runningCount < limits.maximumOperations, head < ready.count else { return nil }
        let hash = ready[head]
        head += 1
        if head * 2 >= ready.count {
            ready.removeFirst(head)
            head = 0
        }
        guard var record = records.removeValue(forKey: hash), let waiting = record.waiting else {
            preconditionFailure("A key is ready without an operation")
        }
        assert(record.isReady && record.running == nil, "1: an operation waits, and none runs")
        record.isReady = false
        record.waiting = nil
        record.running = waiting
        runningCount += 1
        records[hash] = record
        return Start(hash: hash, operation: waiting.operation)
    }

    /// Ends the operation of the key, which has returned, with an error if it failed.
    mutating func ended(_ hash: KeyHash, _ error: (any Error)?, nowNanoseconds: UInt64) {
        guard var record = records.removeValue(forKey: hash), let running = record.running else {
            preconditionFailure("An operation ended that was not under way")
        }
        assert(!record.isReady, "1: no operation of a key is ready while one runs")
        queuedBytes -= running.operation.queuedBytes
        record.running = nil
        let wasLost = record.isLost
        record.isLost = false
        if !wasLost { runningCount -= 1 }
        assert(queuedBytes >= 0 && runningCount >= 0, "only an operation that began ends")
        tellWatchers(&record, upTo: running.number, error)
        record.lastError = error ?? (wasLost ? CacheError.storeLate : nil)
        if error != nil || wasLost {
            // A call that ended after its limit counts as failed: its waiters were told so.
            fail(&record, running.number, isDue: wasLost, nowNanoseconds)
        } else {
            setBarred(false, &record)
            record.failures = 0
            makeReady(&record)
        }
        if record.waiting != nil || record.isBarred { records[hash] = record }
        if barredCount > limits.maximumBarredKeys { barEverything() }
    }

    /// Marks the operation of the key as past its limit; it may end at any time or never.
    mutating func lost(_ hash: KeyHash, _ error: any Error) {
        guard var record = records.removeValue(forKey: hash), record.running != nil else {
            preconditionFailure("An operation was lost that was not under way")
        }
        assert(!record.isLost, "an operation is lost once")
        record.isLost = true
        runningCount -= 1
        assert(runningCount >= 0, "only an operation that began is lost")
        setBarred(true, &record)
        forgetWaitingStore(&record, error)
        records[hash] = record
        if barredCount > limits.maximumBarredKeys { barEverything() }
    }

    /// Postpones the operations that are ready, as the store cannot be called.
    mutating func putOffReady(_ error: any Error, nowNanoseconds: UInt64) {
        let hashes = ready[head...]
        ready = []
        head = 0
        for hash in hashes {
            guard var record = records.removeValue(forKey: hash), let waiting = record.waiting
            else { preconditionFailure("A key is ready without an operation") }
            assert(record.isReady && record.running == nil, "1: an operation waits, and none runs")
            record.isReady = false
            forgetWaitingStore(&record, error)
            record.lastError = error
            fail(&record, waiting.number, isDue: false, nowNanoseconds)
            records[hash] = record
        }
        assert(isSumOfRecords, "each operation and each bar is counted once")
        if barredCount > limits.maximumBarredKeys { barEverything() }
    }

    /// Replaces the entry that waits to be stored with a removal, and tells all waiters.
    private mutating func forgetWaitingStore(_ record: inout Record, _ error: any Error) {
        if let waiting = record.waiting, !waiting.operation.isRemoval {
            queuedBytes -= waiting.operation.queuedBytes
            assert(queuedBytes >= 0, "only queued bytes are given back")
            record.waiting?.operation = .remove(record.key)
        }
        tellWatchers(&record, upTo: .max, error)
    }

    private mutating func tellWatchers(
        _ record: inout Record,
        upTo number: UInt64,
        _ error: (any Error)?
    ) {
        guard !record.watchers.isEmpty else { return }
        for watcher in record.watchers where watcher.number <= number {
            told.append(Told(settlement: watcher.settlement, error: error))
        }
        record.watchers.removeAll { $0.number <= number }
    }

    /// Bars the key, and queues a removal that starts at once or after a delay.
    private mutating func fail(
        _ record: inout Record,
        _ number: UInt64,
        isDue: Bool,
        _ nowNanoseconds: UInt64
    ) {
        setBarred(true, &record)
        record.failures += 1
        if let waiting = record.waiting, waiting.number > number || isDue {
            return makeReady(&record)
        }
        record.waiting = Numbered(operation: .remove(record.key), number: number)
        guard !isDue else { return makeReady(&record) }
        record.dueNanoseconds =
            nowNanoseconds + limits.retryNanoseconds(afterFailures: record.failures)
        firstDueNanoseconds = min(firstDueNanoseconds, record.dueNanoseconds)
    }

    private mutating func setBarred(_ isBarred: Bool, _ record: inout Record) {
        guard record.isBarred != isBarred else { return }
        record.isBarred = isBarred
        barredCount += isBarred ? 1 : -1
        assert(barredCount >= 0, "only a barred key is unbarred")
    }

    /// Makes the postponed operations ready that are due now.
    mutating func wake(nowNanoseconds: UInt64) {
        guard nowNanoseconds >= firstDueNanoseconds else { return }
        firstDueNanoseconds = .max
        var due: [(number: UInt64, hash: KeyHash)] = []
        for (hash, record) in records where record.isPutOff {
            if record.dueNanoseconds <= nowNanoseconds {
                due.append((record.waiting?.number ?? 0, hash))
            } else {
                firstDueNanoseconds = min(firstDueNanoseconds, record.dueNanoseconds)
            }
        }
        // In the order of the operations, not of the hashes.
        for (_, hash) in due.sorted(by: { $0.number < $1.number }) {
            records[hash]?.isReady = true
            ready.append(hash)
        }
    }

    // MARK: Barring

    /// Decides how the key may be read.
    func reading(_ key: StoreKey) -> Reading {
        guard let record = records[key.hash] else {
            return bars.coversEverything ? .absent : .behind
        }
        guard !record.isLost || record.waiting != nil else { return .absent }
        switch (record.waiting ?? record.running)?.operation {
        case .store(let entry): return entry.key == key ? .entry(entry) : .absent
        case .remove, nil: return .absent
        }
    }

    /// Turns waiting stores in `scope` into removals, and queues removals after those under way.
    ///
    /// - Returns: The entries and bytes taken back, and the stores in `scope` that are under way.
    mutating func withdraw(
        _ scope: RemovalScope
    ) -> (count: RemovalCount, running: [(hash: KeyHash, number: UInt64)]) {
        var count = RemovalCount()
        var running: [(hash: KeyHash, number: UInt64)] = []
        for (hash, record) in records {
            if let waiting = record.waiting, case .store(let entry) = waiting.operation,
                entry.isCovered(by: scope)
            {
                records[hash]?.waiting?.operation = .remove(record.key)
                queuedBytes -= waiting.operation.queuedBytes
                assert(queuedBytes >= 0, "only queued bytes are given back")
                count.entries += 1
                count.bytes += entry.sizeBytes
            }
            if !record.isLost, let numbered = record.running,
                case .store(let entry) = numbered.operation, entry.isCovered(by: scope)
            {
                running.append((hash, numbered.number))
                guard record.waiting == nil else { continue }
                number += 1
                let removal = Numbered(operation: .remove(record.key), number: number)
                records[hash]?.waiting = removal
            }
        }
        assert(isSumOfRecords, "each operation and each bar is counted once")
        return (count, running)
    }

    /// Bars the whole store until everything in it is removed, as too many keys are barred to
    /// remember.
    mutating func barEverything() {
        hasBarredEverything = true
        bars.owe(.everything)
        ready = []
        head = 0
        for hash in Array(records.keys) {
            guard var record = records.removeValue(forKey: hash) else { continue }
            forgetWaitingStore(&record, CacheError.storeBarred)
            record.isReady = false
            if record.running == nil {
                setBarred(false, &record)
                continue
            }
            // The operation may take effect after the removal of everything.
            record.waiting = Numbered(operation: .remove(record.key), number: number)
            records[hash] = record
        }
        firstDueNanoseconds = .max
        assert(isSumOfRecords, "each operation and each bar is counted once")
    }

    /// Whether the bytes and the bars that are counted are those of the records; O(n).
    private var isSumOfRecords: Bool {
        let bytes = records.values.reduce(0) { sum, record in
            let waiting = record.waiting?.operation.queuedBytes ?? 0
            return sum + waiting + (record.running?.operation.queuedBytes ?? 0)
        }
        return queuedBytes == bytes && barredCount == records.values.count { $0.isBarred }
    }
}
