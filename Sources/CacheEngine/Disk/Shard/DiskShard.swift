import Synchronization

/// One shard of the disk tier: a log of records in segments, and the index of the newest copies.
///
/// Readers and the engine use `state` directly, under its mutex and without waiting. All work on
/// the log's files, except reads of records, runs in this actor, whose executor is a lane of the
/// I/O pool. A step of the actor may wait for the device, but never suspends.
package actor DiskShard {
    nonisolated let settings: ShardSettings
    nonisolated let volume: Volume
    nonisolated let pool: IOPool
    nonisolated let lane: IOLane
    nonisolated let ledger: DiskLedger
    nonisolated let clock: any CacheClock
    nonisolated let faults: DiskFaults
    nonisolated let watch: DiskWatch
    nonisolated let root: DiskDirectory
    nonisolated let state: Mutex<ShardState>
    /// The newest soft purges in `state`.
    nonisolated let newestMark = NewestMark()

    var writer = LogWriter()
    /// Sealed segments, oldest first.
    var order: [Int] = []
    /// Segments without live records, the one unused longest first.
    var clean: [Int] = []
    /// Slots of unlinked files that may still have readers.
    var unlinked: [Int] = []
    /// Slots whose file could not be opened: a link, a directory, or a file whose records may be
    /// readable one day.
    var foreign: Set<Int> = []
    var bodyLine = BodyLine()
    /// Bodies that were spared since one was dropped.
    var bodiesSparedInARow = 0
    /// Whether the last reclaim for a body went on in a clean segment.
    var hasSpilled = false
    /// Whether the device has the names of the files that this run has found, and not those of
    /// segments that it has unlinked with their entries.
    var hasConfirmedNames = false
    var nextGeneration: UInt64 = 1
    /// Consecutive failed batches.
    var failures = 0
    /// All failed batches.
    var failedBatches = 0
    /// The time at which a failed shard retries its device, on the machine's monotonic clock.
    var retryAt: UInt64 = 0

    static let failuresMax = 4
    static let retryNanoseconds: UInt64 = 1_000_000_000

    init(
        _ settings: ShardSettings,
        entryBytesMax: Int,
        volume: Volume,
        pool: IOPool,
        ledger: DiskLedger,
        clock: any CacheClock,
        faults: DiskFaults,
        watch: DiskWatch,
        root: DiskDirectory
    ) {
        self.settings = settings
        self.volume = volume
        self.pool = pool
        self.ledger = ledger
        self.clock = clock
        self.faults = faults
        self.watch = watch
        self.root = root
        lane = pool.makeLane()
        state = Mutex(ShardState(settings, entryBytesMax: entryBytesMax, newestMark: newestMark))
        lane.setWork { [weak self] in self?.assumeIsolated { $0.writeWhatIsDue() } }
    }

    /// Closes the files of the segments; `removeCleanSegment` closes one earlier.
    deinit {
        let files = state.withLock { state in
            (0..<state.segments.count).compactMap { slot in
                let info = state.segments[slot]
                return info.state == .absent ? nil : info.file
            }
        }
        for file in files { volume.close(file) }
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        lane.asUnownedSerialExecutor()
    }

    nonisolated func perform(_ wake: ShardState.Wake) {
        switch wake {
        case .none: break
        case .now: lane.requestWork()
        case .at(let nanoseconds): lane.requestWork(atNanoseconds: nanoseconds)
        }
    }

    nonisolated func noteWriteError(_ fault: FileFault?) {
        state.withLock { $0.counters.writeErrors += 1 }
        faults.note("\(settings.directory) could not be written: \(reason(fault))")
    }

    private nonisolated func reason(_ fault: FileFault?) -> String {
        if root.isGone { return "\(root.path) was deleted or replaced" }
        return fault?.text ?? (mayWrite ? "the capacity is used up" : "the disk tier is closed")
    }

    /// - Throws: An error that names the directory, if that has gone.
    nonisolated func checkNotGone() throws {
        guard root.isGone else { return }
        throw CacheError(
            .storageFailed,
            detail: "\(root.path) was deleted or replaced; entries are no longer kept on disk"
        )
    }

    nonisolated func noteReadError(_ fault: FileFault) {
        faults.note("\(settings.directory) could not be read: \(fault.text)")
    }

    /// Stops storing if the directory is no longer the one that was opened; returns whether that is
    /// so.
    ///
    /// The first shard that notices it reports it.
    nonisolated func stopIfGone() -> Bool {
        if root.isInPlace { return false }
        let isNews = state.withLock { state in
            guard state.condition != .closed else { return false }
            state.condition = .closed
            state.hasLostDirectory = true
            return true
        }
        if isNews {
            faults.note(
                "\(root.path) was deleted or replaced; entries are no longer kept on disk",
                isEnd: true
            )
        }
        return true
    }

    nonisolated var nowSeconds: UInt32 {
        EntryHead.seconds(clock.nowSeconds)
    }

    func segmentPath(_ slot: Int) -> String {
        settings.directory + "/" + Self.segmentName(slot)
    }
}

/// The constant settings of one shard.
struct ShardSettings: Sendable {
    let number: Int
    let directory: String
    let storeID: KeyHash
    let hasher: KeyHasher
    let segmentBytes: Int
    let queueBytesMax: Int
    /// Common to the shards of a tier.
    let oversize: OversizeBudget
    let batchBytes: Int
    let flushNanoseconds: UInt64
    let inlineBodyBytesMax: Int
    let requestsInMemory: DiskConfiguration.RequestsInMemory?
    /// The placements of the shard's entries.
    let placements: ClosedRange<UInt64>
    let durability: DiskConfiguration.Durability

    /// The maximum size of one record in the log.
    var recordBytesMax: Int { min(segmentBytes / 2, RecordPlace.recordBytesMax) }
}
