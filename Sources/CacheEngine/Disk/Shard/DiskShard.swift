import Synchronization

/// One shard of the disk tier: a log of records in segments, and the index of what is newest.
///
/// Readers and the engine use `state` directly, under its mutex and without waiting. Whatever
/// touches a file runs in this actor, whose executor is a lane of the I/O pool: there it may wait,
/// one step after the other, and never suspends half-way.
package actor DiskShard {
    nonisolated let settings: ShardSettings
    nonisolated let volume: Volume
    nonisolated let pool: IOPool
    nonisolated let lane: IOLane
    nonisolated let ledger: DiskLedger
    nonisolated let clock: any CacheClock
    nonisolated let state: Mutex<ShardState>

    var writer = LogWriter()
    /// Sealed segments, oldest first.
    var order: [Int] = []
    /// Segments whose records are all dead, longest first.
    var clean: [Int] = []
    var nextGeneration: UInt64 = 1
    /// Failed batches in a row.
    var failures = 0
    /// When a failed shard tries its device again, on the machine's monotonic clock.
    var retryAt: UInt64 = 0

    static let failuresMax = 4
    static let retryNanoseconds: UInt64 = 1_000_000_000

    init(
        _ settings: ShardSettings,
        volume: Volume,
        pool: IOPool,
        ledger: DiskLedger,
        clock: any CacheClock
    ) {
        self.settings = settings
        self.volume = volume
        self.pool = pool
        self.ledger = ledger
        self.clock = clock
        lane = pool.makeLane()
        state = Mutex(ShardState(settings))
        lane.setWork { [weak self] in self?.assumeIsolated { $0.writeWhatIsDue() } }
    }

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

    nonisolated var nowSeconds: UInt32 {
        UInt32(clamping: clock.nowSeconds)
    }

    func segmentPath(_ slot: Int) -> String {
        let digits = String(slot)
        return settings.directory + "/" + String(repeating: "0", count: 5 - digits.count) + digits
            + ".seg"
    }
}
