extension StorageTiers {
    /// Opens what the configuration asks for.
    static func open(
        _ configuration: Configuration,
        supervisor: Supervisor,
        recorder: Recorder
    ) async throws -> StorageTiers {
        let second: Second
        var hasher = configuration.hasher ?? .random()
        switch configuration.disk.kind {
        case .disabled: second = .none
        case .custom(let store):
            do {
                // The session of before has ended.
                _ = try await store.removeAll(in: .storageClass(.session))
            } catch { recorder.storageFailed(error) }
            second = .queued(QueuedStore(store, supervisor: supervisor, recorder: recorder))
        case .directory(let path, let capacity):
            let disk = try await DiskTier.open(
                configuration.disk.diskConfiguration(path, capacity),
                clock: configuration.clock
            )
            // The seed of the directory: what is on disk must be found again.
            hasher = disk.hasher
            second = .disk(disk)
        }
        return StorageTiers(
            memory: MemoryTier(configuration.memory.memoryConfiguration),
            second: second,
            hasher: hasher,
            clock: configuration.clock,
            recorder: recorder
        )
    }

    /// Removes what has expired.
    func sweep() async { _ = await memory.sweepExpired(nowSeconds: nowSeconds) }
}

extension MemoryOptions {
    var memoryConfiguration: MemoryConfiguration {
        MemoryConfiguration(
            capacityBytes: capacity.bytes,
            policy: eviction,
            entrySizeShareMax: entryShareMax,
            pinnedShareMax: pinnedShareMax
        )
    }
}

extension DiskOptions {
    func diskConfiguration(_ path: String, _ capacity: ByteCount) -> DiskConfiguration {
        var disk = DiskConfiguration(directory: path, capacityBytes: capacity.bytes)
        disk.durability = durability == .none ? .none : .onSeal
        disk.foreignDirectory = foreignDirectory == .refuse ? .error : .startEmpty
        disk.entryBytesMax = max(1, Int(Double(capacity.bytes) * entryShareMax))
        return disk
    }
}
