import Synchronization

#if canImport(Glibc)
    import Glibc
#elseif canImport(Darwin)
    import Darwin
#endif

/// The disk half of the cache: shards of a log each, on a few I/O threads.
///
/// `enqueue`, `enqueueRemoval`, `read` and the questions about places are short and synchronous:
/// the engine calls them while it holds a memory shard's lock, so the order of operations on a key
/// is the order under that lock. Everything else waits for the device.
package final class DiskTier: Sendable {
    package let configuration: DiskConfiguration
    /// Hashes keys with the seed of this directory.
    package let hasher: KeyHasher
    /// What opening found.
    package let recovery: RecoveryReport
    package let shardCount: Int
    package let segmentBytes: Int

    let shards: [DiskShard]
    private let shardShift: UInt64
    private let directory: DiskDirectory
    private let pool: IOPool
    private let clock: any CacheClock

    private init(
        _ configuration: DiskConfiguration,
        _ directory: DiskDirectory,
        _ shards: [DiskShard],
        _ recovery: RecoveryReport,
        _ pool: IOPool,
        _ clock: any CacheClock
    ) {
        self.configuration = configuration
        self.directory = directory
        self.shards = shards
        self.recovery = recovery
        self.pool = pool
        self.clock = clock
        hasher = KeyHasher(seed: directory.manifest.seed)
        shardCount = shards.count
        segmentBytes = directory.manifest.segmentBytes
        shardShift = UInt64(64 - shards.count.trailingZeroBitCount)
    }

    /// Opens the directory, alone, and recovers what it holds.
    package static func open(
        _ configuration: DiskConfiguration,
        clock: any CacheClock = SystemClock(),
        fileSystem volume: Volume = .system
    ) async throws -> DiskTier {
        let start = monotonicNanoseconds()
        let processors = max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
        guard let geometry = DiskGeometry(configuration, processors: processors) else {
            throw CacheError(
                .configurationInvalid,
                detail: "the disk capacity holds no four segments a shard"
            )
        }
        let threads = configuration.ioThreads ?? min(8, max(2, processors))
        let pool = IOPool(threadCount: max(1, threads))
        let now = clock.nowSeconds
        let opened = await pool.run { () -> Result<DiskDirectory, CacheError> in
            do throws(CacheError) {
                return .success(try .open(configuration, geometry, nowSeconds: now, volume))
            } catch { return .failure(error) }
        }
        guard let opened else { throw CacheError(.directoryUnusable, detail: "no I/O threads") }
        let directory = try opened.get()
        let shards = makeShards(configuration, directory, volume, pool, clock)
        var report = RecoveryReport()
        do {
            report = try await recover(shards)
        } catch let fault as FileFault {
            throw CacheError(.directoryUnusable, detail: "\(directory.path): \(fault.text)")
        }
        report.isFresh = directory.isFresh
        report.milliseconds = Int((monotonicNanoseconds() - start) / 1_000_000)
        let tier = DiskTier(configuration, directory, shards, report, pool, clock)
        for shard in shards { shard.perform(shard.state.withLock { $0.wakeAfterChange() }) }
        return tier
    }

    private static func recover(_ shards: [DiskShard]) async throws -> RecoveryReport {
        try await withThrowingTaskGroup(of: RecoveryReport.self) { group in
            for shard in shards { group.addTask { try await shard.recover() } }
            var report = RecoveryReport()
            for try await part in group { report.add(part) }
            return report
        }
    }

    private static func makeShards(
        _ configuration: DiskConfiguration,
        _ directory: DiskDirectory,
        _ volume: Volume,
        _ pool: IOPool,
        _ clock: any CacheClock
    ) -> [DiskShard] {
        let manifest = directory.manifest
        let share = shareBytes(configuration.capacityBytes, manifest.shardCount)
        return (0..<manifest.shardCount).map { number in
            let settings = ShardSettings(
                number: number,
                directory: directory.shardPath(number),
                storeID: manifest.storeID,
                hasher: KeyHasher(seed: manifest.seed),
                segmentBytes: manifest.segmentBytes,
                queueBytesMax: configuration.queueBytesMax,
                batchBytes: configuration.batchBytes,
                flushNanoseconds: UInt64(max(1, configuration.flushMilliseconds)) * 1_000_000,
                entryBytesMax: configuration.entryBytesMax ?? share / 8,
                inlineBodyBytesMax: min(
                    configuration.inlineBodyBytesMax,
                    manifest.segmentBytes / 4
                ),
                durability: configuration.durability,
                admission: configuration.admission,
                baseSeconds: UInt32(clamping: clock.nowSeconds)
            )
            return DiskShard(
                settings,
                volume: volume,
                pool: pool,
                // One segment to write, and one to reclaim into it.
                ledger: DiskLedger(
                    capacityBytes: share,
                    logBytesMin: 2 * manifest.segmentBytes
                ),
                clock: clock
            )
        }
    }

    private static func shareBytes(_ capacityBytes: Int, _ shardCount: Int) -> Int {
        max(0, capacityBytes - DiskGeometry.reservedBytes(shardCount: shardCount)) / shardCount
    }

    private func shard(_ hash: KeyHash) -> DiskShard {
        // A shift by 64, with one shard, gives zero.
        shards[Int(hash.placement >> shardShift)]
    }

    private var nowSeconds: UInt32 { UInt32(clamping: clock.nowSeconds) }

    // MARK: Under the engine's lock

    /// Accepts an entry for writing; readable at once.
    ///
    /// A refusal removes what was there.
    package func enqueue(_ entry: Entry) -> StoreOutcome { enqueue(entry, body: nil) }

    /// The same for an entry whose body was written by a `BodyWriter`, or belongs to an older
    /// version of the entry: fresh metadata, the same file.
    package func enqueue(_ entry: Entry, body: DiskBody?) -> StoreOutcome {
        let shard = shard(entry.head.hash)
        if let body, body.file.ledger !== shard.ledger { return .refused(.notAdmitted) }
        let now = nowSeconds
        let (outcome, wake) = shard.state.withLock { state in
            let outcome = state.store(entry, body: body?.file, nowSeconds: now)
            return (outcome, state.wakeAfterChange())
        }
        shard.perform(wake)
        return outcome
    }

    /// Removes the entry; false when there was none.
    ///
    /// Durable after `confirmRemoval(of:)`.
    @discardableResult
    package func enqueueRemoval(_ hash: KeyHash) -> Bool {
        let shard = shard(hash)
        let (wasThere, wake) = shard.state.withLock { state in
            let wasThere = state.dropCopies(of: hash)
            return (wasThere, state.wakeAfterChange())
        }
        shard.perform(wake)
        return wasThere
    }

    /// Whether there may be an entry: another key of the same hash counts as well.
    package func contains(_ hash: KeyHash) -> Bool {
        shard(hash).state.withLock { !$0.index.place(of: hash.identity).isNone }
    }

    /// Which copy of the entry is the newest.
    package func currentToken(_ hash: KeyHash) -> DiskToken? {
        shard(hash).state.withLock { $0.token(of: hash.identity) }
    }

    /// Whether what a read gave is still the newest copy and no removal came after it.
    package func isCurrent(_ token: DiskToken, _ hash: KeyHash) -> Bool {
        currentToken(hash) == token
    }

    // MARK: Reading

    /// Counts a miss where the index knows nothing of the hash; false where it takes a read.
    package func noteCertainMiss(_ hash: KeyHash) -> Bool {
        shard(hash).state.withLock { state in
            guard state.index.place(of: hash.identity).isNone else { return false }
            state.counters.misses += 1
            return true
        }
    }

    /// Reads without waiting: a queued copy, or one in the page cache.
    package func read(
        _ hash: KeyHash,
        key: UnsafeRawBufferPointer,
        nowSeconds: UInt32
    ) -> ReadResult {
        shard(hash).read(hash, key: key, nowSeconds: nowSeconds)
    }

    /// Reads and waits for the device; readers of one key share one read.
    ///
    /// Never gives `.mustWait`.
    package func readWaiting(
        _ hash: KeyHash,
        key: [UInt8],
        nowSeconds: UInt32
    ) async -> ReadResult {
        await shard(hash).readWaiting(hash, key: key, nowSeconds: nowSeconds)
    }

    // MARK: Large bodies

    /// Begins a body that is too large, or of unknown length, to be held in memory; it can become
    /// the body of the entry with that hash.
    package func beginBody(for hash: KeyHash, expectedBytes: Int?) async throws -> BodyWriter {
        let shard = shard(hash)
        guard expectedBytes ?? 0 <= shard.settings.entryBytesMax else {
            throw CacheError(.bodyTooLarge, detail: "the body is over the limit for one entry")
        }
        return try await shard.beginBody(expectedBytes: expectedBytes)
    }

    // MARK: Control

    /// Makes the removals accepted so far for this key survive a kill.
    package func confirmRemoval(of hash: KeyHash) async throws {
        try await shard(hash).confirmRemovals()
    }

    /// Whether a removal may have been accepted that a kill, or a power cut, would undo.
    func hasUnconfirmedRemovals(_ hash: KeyHash) -> Bool {
        if configuration.durability == .synced { return true }
        return shard(hash).state.withLock { $0.queue.removalCount > 0 }
    }

    /// Changes the capacity; reached before it returns.
    package func setCapacity(_ bytes: Int) async {
        let share = Self.shareBytes(bytes, shards.count)
        for shard in shards { await shard.setCapacity(share) }
    }

    /// Removes the entries of the session.
    package func endSession() async throws -> RemovalCount {
        try await removeAll(in: .storageClass(.session))
    }

    /// Writes and seals everything and lets go of the directory.
    ///
    /// From here on stores are refused
    /// and reads find nothing; bodies that somebody reads stay readable.
    package func close() async {
        for shard in shards { await shard.close() }
        directory.unlock()
    }

    package var statistics: DiskStatistics {
        var total = DiskStatistics()
        for shard in shards { total += shard.statistics }
        return total
    }

    #if ENGINE_CHECKS
        package func checkInvariants() async {
            for shard in shards { await shard.checkInvariants() }
        }
    #endif
}
