import Platform

extension TieredStore {
    /// Opens the tiers of the configuration.
    static func open(
        _ configuration: HTTPCache.Configuration,
        supervisor: Supervisor,
        recorder: Recorder,
        outlet: SharedOutlet? = nil
    ) async throws -> TieredStore {
        let memory = MemoryTier(configuration.memory.memoryConfiguration)
        let backing: any BackingTier
        var hasher = configuration.hasher ?? .random()
        switch configuration.backing.kind {
        case .none: backing = NoBackingTier()
        case .custom(let store):
            // The store is not called yet: it may hang, and other processes may use their sessions.
            backing = QueuedStore(
                store,
                limits: configuration.backing.storeLimits,
                clock: configuration.clock,
                supervisor: supervisor,
                recorder: recorder
            )
        case .directory(let path, let capacity):
            var options = configuration.backing.diskConfiguration(path, capacity)
            let limits = configuration.backing.storeLimits
            options.waitNanoseconds = limits.maximumOperationTime.nanoseconds
            // The origin needs the rest.
            options.requestNanoseconds =
                configuration.originLimits.maximumHeadTime.nanoseconds / 2
            options.startTask = { supervisor.start(.watching, $0) }
            options.startWork = { supervisor.start(.writing, $0) }
            options.requestsInMemory = { memory.requests(of: $0, placedIn: $1) }
            let disk = try await DiskTier.open(
                options,
                clock: configuration.clock,
                fileSystem: configuration.backing.fileSystem,
                onFault: { recorder.storageFailed($0, isTold: $1) }
            )
            // The seed comes from the directory, so that entries on disk are found again.
            hasher = disk.hasher
            backing = disk
        }
        return TieredStore(
            memory: memory,
            backing: backing,
            hasher: hasher,
            clock: configuration.clock,
            recorder: recorder,
            outlet: outlet,
            executor: configuration.taskExecutor
        )
    }
}

extension MemoryOptions {
    /// The limits on the bytes of arriving bodies, beside the memory.
    var bodyLimits: BodyLimits {
        BodyLimits(memoryBytes: capacity.bytes, entryShareMax: maximumEntryShare)
    }

    var memoryConfiguration: MemoryConfiguration {
        MemoryConfiguration(
            capacityBytes: capacity.bytes,
            policy: eviction,
            entrySizeShareMax: maximumEntryShare,
            pinnedShareMax: maximumPinnedShare
        )
    }
}

extension BackingStore {
    func diskConfiguration(_ path: String, _ capacity: ByteCount) -> DiskConfiguration {
        var disk = DiskConfiguration(directory: path, capacityBytes: capacity.bytes)
        disk.durability =
            switch durability {
            case .none: .none
            case .onSegmentSeal: .onSegmentSeal
            case .onRemoval: .onRemoval
            }
        disk.flushMilliseconds = flushMilliseconds
        disk.pool = pool
        disk.foreignDirectory = foreignDirectory == .refuse ? .error : .startEmpty
        disk.entryShareMax = maximumEntryShare
        return disk
    }
}
