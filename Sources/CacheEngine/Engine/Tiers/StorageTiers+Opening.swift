extension StorageTiers {
    /// Opens what the configuration asks for.
    static func open(
        _ configuration: Configuration,
        supervisor: Supervisor,
        recorder: Recorder
    ) async throws -> StorageTiers {
        let second: Second
        switch configuration.disk.kind {
        case .disabled: second = .none
        case .custom(let store):
            second = .queued(QueuedStore(store, supervisor: supervisor, recorder: recorder))
        case .directory:
            throw CacheError(.configurationInvalid, detail: "No disk in this build")
        }
        return StorageTiers(
            memory: MemoryTier(configuration.memory.memoryConfiguration),
            second: second,
            hasher: .random(),
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
            entrySizeShareMax: entryShareMax,
            pinnedShareMax: pinnedShareMax
        )
    }
}
