/// The errors of a store that takes a body piece by piece.
extension Services {
    /// Notes an error of the store; returns the reason for which the response is not stored.
    func refusal(after error: any Error) -> StoreOutcome.Reason {
        switch (error as? CacheError)?.code {
        case .bodyTooLarge: return .tooLarge
        case .shutDown: return .closed
        default:
            note(storageError: error)
            return .deviceFailed
        }
    }

    /// Counts an error of the store, and reports it; one of the disk only if it has been quiet.
    func note(storageError error: any Error) {
        // `DiskWatch` counts once that the device hangs, and not for each body.
        if tiers.backing.disk != nil, (error as? CacheError)?.code == .storageTimedOut { return }
        guard let disk = tiers.backing.disk, let error = error as? CacheError,
            !Mutant.tellsEachStorageError.isOn
        else { return recorder.storageFailed(error) }
        disk.faults.note(error)
    }
}
