import Platform
import Synchronization

/// The disk tier of the cache: several shards, each with its own log, on a few I/O threads.
///
/// `enqueue`, `enqueueRemoval`, `read` and the queries about places are short and synchronous. The
/// engine calls them while it holds a memory shard's lock, so operations on one key happen on disk
/// in the order of that lock. Every other method waits for the device.
package final class DiskTier: Sendable {
    package let configuration: DiskConfiguration
    /// Hashes keys with the seed of this directory.
    package let hasher: KeyHasher
    /// The result of the opening.
    package let recovery: RecoveryReport
    package let shardCount: Int
    package let segmentBytes: Int

    let shards: [DiskShard]
    /// The failures of all shards.
    var faults: DiskFaults { shards[0].faults }
    private let shardShift: UInt64
    private let directory: DiskDirectory
    private let positionTrust: FleetPositionTrust
    private let pool: IOPool
    /// The limit of all waits for the device.
    let watch: DiskWatch
    /// The same in every shard while it is unlocked.
    private let presentCapacity: Mutex<Int>

    private init(
        _ configuration: DiskConfiguration,
        _ directory: DiskDirectory,
        _ shards: [DiskShard],
        _ recovery: RecoveryReport,
        _ pool: IOPool,
        _ watch: DiskWatch
    ) {
        self.configuration = configuration
        self.directory = directory
        self.shards = shards
        self.recovery = recovery
        self.pool = pool
        self.watch = watch
        positionTrust = FleetPositionTrust(configuration)
        presentCapacity = Mutex(configuration.capacityBytes)
        hasher = KeyHasher(seed: directory.manifest.seed)
        shardCount = shards.count
        segmentBytes = directory.manifest.segmentBytes
        shardShift = UInt64(64 - shards.count.trailingZeroBitCount)
    }

    /// Opens the directory exclusively and recovers its entries.
    package static func open(
        _ configuration: DiskConfiguration,
        clock: any CacheClock = SystemClock(),
        fileSystem volume: Volume = .system,
        onFault: @escaping @Sendable (CacheError, _ isTold: Bool) -> Void = { _, _ in }
    ) async throws -> DiskTier {
        let processors = Machine.processorCount
        guard let geometry = DiskGeometry(configuration, processors: processors) else {
            throw CacheError(
                .configurationInvalid,
                detail: "The disk capacity of \(configuration.capacityBytes) bytes is too small "
                    + "for \(DiskGeometry.segmentsPerShardMin) segments in each shard; raise it"
            )
        }
        let threads = configuration.ioThreads ?? min(8, max(2, processors))
        let pool = configuration.pool ?? IOPool(threadCount: max(1, threads))
        let now = clock.nowSeconds
        let opened = await pool.run { () -> Result<DiskDirectory, CacheError> in
            do throws(CacheError) {
                return .success(try .open(configuration, geometry, nowSeconds: now, volume))
            } catch { return .failure(error) }
        }
        guard let opened else {
            throw CacheError(
                .directoryUnusable,
                detail: "The directory \(configuration.directory) cannot be used: "
                    + "no thread could be started"
            )
        }
        let directory = try opened.get()
        let faults = DiskFaults(clock: clock, report: onFault)
        let watch = DiskWatch(configuration, clock: clock, faults: faults)
        let shards = makeShards(configuration, directory, volume, pool, clock, faults, watch)
        var report = RecoveryReport()
        do {
            report = try await recover(shards)
        } catch let fault as FileFault {
            throw DiskDirectory.unusable(directory.path, fault)
        }
        report.isFresh = directory.isFresh
        report.notes = directory.notes + report.notes
        noteMissingFiles(configuration, directory.manifest, in: &report)
        for note in report.notes { onFault(CacheError(.storageFailed, detail: note), true) }
        let tier = DiskTier(configuration, directory, shards, report, pool, watch)
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
        _ clock: any CacheClock,
        _ faults: DiskFaults,
        _ watch: DiskWatch
    ) -> [DiskShard] {
        let manifest = directory.manifest
        let share = DiskGeometry.shareBytes(
            configuration.capacityBytes,
            shardCount: manifest.shardCount
        )
        let entryBytesMax = configuration.entryBytesMax(
            capacityBytes: configuration.capacityBytes,
            shardCount: manifest.shardCount
        )
        let oversize = OversizeBudget(
            bytesMax: manifest.shardCount * configuration.queueBytesMax
        )
        return (0..<manifest.shardCount).map { number in
            let settings = ShardSettings(
                number: number,
                directory: directory.shardPath(number),
                storeID: manifest.storeID,
                hasher: KeyHasher(seed: manifest.seed),
                segmentBytes: manifest.segmentBytes,
                queueBytesMax: configuration.queueBytesMax,
                oversize: oversize,
                batchBytes: configuration.batchBytes,
                flushNanoseconds: UInt64(max(1, configuration.flushMilliseconds)) * 1_000_000,
                inlineBodyBytesMax: min(
                    configuration.inlineBodyBytesMax,
                    manifest.segmentBytes / 4
                ),
                requestsInMemory: configuration.requestsInMemory,
                placements: placements(of: number, shardCount: manifest.shardCount),
                durability: configuration.durability
            )
            return DiskShard(
                settings,
                entryBytesMax: entryBytesMax,
                volume: volume,
                pool: pool,
                ledger: ledger(configuration, manifest, shareBytes: share),
                clock: clock,
                faults: faults,
                watch: watch,
                root: directory
            )
        }
    }

    private static func placements(of number: Int, shardCount: Int) -> ClosedRange<UInt64> {
        let shift = UInt64(64 - shardCount.trailingZeroBitCount)
        let first = UInt64(number) << shift
        return first...first | (.max >> UInt64(shardCount.trailingZeroBitCount))
    }

    private static func ledger(
        _ configuration: DiskConfiguration,
        _ manifest: Manifest,
        shareBytes: Int
    ) -> DiskLedger {
        let segmentsMax = DiskGeometry.segmentsPerShardMax(
            openFilesMax: configuration.openFilesMax,
            shardCount: manifest.shardCount
        )
        return DiskLedger(
            capacityBytes: shareBytes,
            // One segment to write, and one to reclaim into it.
            logBytesMin: 2 * manifest.segmentBytes,
            logBytesMax: segmentsMax * manifest.segmentBytes
        )
    }

    /// Notes that the log cannot use the whole capacity, because the process may open too few files.
    private static func noteMissingFiles(
        _ configuration: DiskConfiguration,
        _ manifest: Manifest,
        in report: inout RecoveryReport
    ) {
        let (path, filesMax) = (configuration.directory, configuration.openFilesMax)
        let count = manifest.shardCount
        let share = DiskGeometry.shareBytes(configuration.capacityBytes, shardCount: count)
        let segments = share / manifest.segmentBytes
        let most = DiskGeometry.segmentsPerShardMax(openFilesMax: filesMax, shardCount: count)
        guard segments > most, most < RecordPlace.segmentsMax else { return }
        report.notes.append(
            "The log in \(path) takes at most \(count * most) of \(count * segments) segments, "
                + "because the process may open \(filesMax) files; raise the limit with ulimit -n"
        )
    }

    /// The size of the largest entry, body included; the same in every shard.
    var entryBytesMax: Int { shards[0].entryBytesMax }

    func shard(_ hash: KeyHash) -> DiskShard {
        // With a single shard the shift by 64 gives zero.
        shards[Int(hash.placement >> shardShift)]
    }

    // MARK: While the key's memory shard is locked

    /// Accepts an entry for writing, with a body written by a `BodyWriter` or kept from an older
    /// version of the entry.
    ///
    /// The entry is readable at once. A refusal removes the older entry. The caller must call `ring`
    /// after the memory shard is unlocked.
    package func accept(_ entry: Entry, body: DiskBody? = nil) -> StoreOutcome {
        let shard = shard(entry.head.hash)
        if let body, body.file.ledger !== shard.ledger { return .refused(.notAdmitted) }
        return shard.state.withLock { $0.store(entry, body: body?.file) }
    }

    /// Removes the entry; returns `false` if there was none.
    ///
    /// Durable after `confirmRemoval(of:)`. The caller must call `ring` after the memory shard is
    /// unlocked.
    package func acceptRemoval(of hash: KeyHash) -> Bool {
        shard(hash).state.withLock { $0.dropCopies(of: hash) }
    }

    // MARK: Outside all locks

    /// Wakes the lane that writes for this hash, if an accepted operation made that necessary.
    package func ring(_ hash: KeyHash) {
        let shard = shard(hash)
        shard.perform(shard.state.withLock { $0.wakeAfterChange() })
    }

    /// Accepts an entry and rings.
    package func enqueue(_ entry: Entry, body: DiskBody? = nil) -> StoreOutcome {
        defer { ring(entry.head.hash) }
        return accept(entry, body: body)
    }

    /// Removes the entry and rings; returns `false` if there was none.
    @discardableResult
    package func enqueueRemoval(_ hash: KeyHash) -> Bool {
        defer { ring(hash) }
        return acceptRemoval(of: hash)
    }

    /// The token of the newest copy of the entry; `nil` if there is no copy.
    package func currentToken(_ hash: KeyHash) -> DiskToken? {
        shard(hash).state.withLock { $0.token(of: hash.identity) }
    }

    /// Whether the copy that a read returned is still the newest and was not removed since.
    package func isCurrent(_ token: DiskToken, _ hash: KeyHash) -> Bool {
        currentToken(hash) == token
    }

    // MARK: Reading

    /// Counts a miss and returns `true` if the index has no entry for the hash.
    ///
    /// Returns `false` if only a read can tell.
    package func noteCertainMiss(_ hash: KeyHash) -> Bool {
        shard(hash).state.withLock { state in
            guard state.index.place(of: hash.identity).isNone else { return false }
            state.counters.misses += 1
            return true
        }
    }

    /// Counts a hit of `readAtOnce` that was used.
    package func countUse(_ hash: KeyHash, of token: DiskToken) {
        shard(hash).countUse(hash, isQueued: token.isQueued)
    }

    /// Reads as `read` does, and counts nothing: the caller counts what it uses.
    package func readAtOnce(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> ReadResult {
        shard(hash).readAtOnce(hash, key: key)
    }

    /// Reads without waiting, from the queue or from the page cache.
    package func read(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> ReadResult {
        shard(hash).read(hash, key: key)
    }

    /// Reads and waits for the device; concurrent readers of one key share one read.
    ///
    /// If too many reads wait, a read that `mayRefuse` returns `.mustWait`, and any other one is done
    /// on the shard's lane. A read that the device does not return within `seconds`, if given, or the
    /// limit, or before its task is cancelled, returns `.mustWait`. A miss proves that there is no
    /// entry.
    package func readWaiting(
        _ hash: KeyHash,
        key: [UInt8],
        mayRefuse: Bool = true,
        withinSeconds seconds: Double? = nil
    ) async -> ReadResult {
        await shard(hash).readWaiting(
            hash,
            key: key,
            mayRefuse: mayRefuse,
            untilNanoseconds: watch.end(ofWaitWithinSeconds: seconds)
        )
    }

    // MARK: Large bodies

    /// The file with the body of the newest entry; `nil` if the entry is still to be written, if its
    /// body is in no file of its own, or if the file was found damaged.
    package func bodyFile(of hash: KeyHash) -> DiskBody? {
        let file = shard(hash).state.withLock { $0.bodies[hash.identity] }
        guard let file, !file.isDamaged, file.isOwned(by: hash) else { return nil }
        return DiskBody(file)
    }

    /// Begins a body that is too large for memory or has an unknown length.
    ///
    /// The body can become the body of the entry with that hash.
    package func beginBody(for hash: KeyHash, expectedBytes: Int?) async throws -> BodyWriter {
        let shard = shard(hash)
        // A body of unknown length has at least one byte.
        try shard.checkBody(bytes: expectedBytes ?? 1)
        return try await watch.call { try await shard.beginBody(expectedBytes: expectedBytes) }
    }

    // MARK: Control

    /// Makes the accepted removals of this key survive the kill of the process.
    package func confirmRemoval(of hash: KeyHash) async throws {
        try await shard(hash).confirmRemovals()
    }

    /// Whether a kill, or a power cut, may still undo an accepted removal.
    func hasUnconfirmedRemovals(_ hash: KeyHash) -> Bool {
        if configuration.durability == .onRemoval { return true }
        return shard(hash).state.withLock { $0.queue.removalCount > 0 }
    }

    /// Changes the capacity; the files fit the new capacity when this returns.
    ///
    /// A call that begins meanwhile replaces it, and both return when the files fit the newer one. It
    /// throws if files cannot be unlinked; the capacity then holds for what is stored from now on.
    package func setCapacity(_ bytes: Int) async throws {
        presentCapacity.withLock { capacity in
            capacity = bytes
            let share = DiskGeometry.shareBytes(bytes, shardCount: shards.count)
            let entryBytesMax = configuration.entryBytesMax(
                capacityBytes: bytes,
                shardCount: shards.count
            )
            for shard in shards { shard.setCapacity(share, entryBytesMax: entryBytesMax) }
        }
        // One segment a step: what the shard has to write meanwhile waits for no more than that.
        // A failing device in one shard must not keep the others large.
        var failure: (any Error)?
        for shard in shards {
            var bodiesMax = Int.max
            do {
                while let next = try await shard.shrink(bodiesMax: bodiesMax) { bodiesMax = next }
            } catch { failure = error }
        }
        if let failure { throw failure }
    }

    /// The capacity that was set last.
    var capacityBytes: Int { presentCapacity.withLock { $0 } }

    /// Writes and seals everything, and releases the directory.
    ///
    /// Afterwards stores are refused and reads find nothing. A body that still has a reader stays
    /// readable.
    package func close() async {
        for shard in shards { await shard.close() }
        directory.unlock()
    }

    /// The bytes that `keep` was given last; `nil` if they are missing, or if a power cut may have
    /// undone a removal that preceded them.
    package func bookmark() async -> [UInt8]? {
        let found = await pool.run { [directory] in directory.bookmark() } ?? nil
        return found.flatMap { positionTrust.trusted($0) }
    }

    /// Replaces the few bytes kept in the directory, beside the shards; after a kill of the process
    /// the older or the newer ones are read.
    package func keep(bookmark: [UInt8]) async throws {
        let bookmark = positionTrust.marked(bookmark)
        let fault = await pool.run { [directory] () -> FileFault? in
            do throws(FileFault) {
                try directory.keep(bookmark: bookmark)
                return nil
            } catch { return error }
        }
        if let fault = fault ?? .inputOutput {
            throw CacheError(
                .storageFailed,
                detail: "The position in the fleet's log cannot be written: \(fault.text)"
            )
        }
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
