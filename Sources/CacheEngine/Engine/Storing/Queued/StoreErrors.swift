/// The errors of a custom store.
extension CacheError {
    static let storeLate = CacheError(
        .storageTimedOut,
        detail: "The store did not return in time; the entries concerned are not read until a "
            + "later removal succeeds"
    )
    static let storeBarred = CacheError(
        .storageFailed,
        detail: "Too many removals failed; no entry is read from the store until a removal of "
            + "all entries succeeds"
    )

    /// A failure of the store as a `CacheError`.
    static func storeFailure(_ error: any Error) -> any Error {
        if error is CacheError { return error }
        return CacheError(.storageFailed, detail: "The store failed: \(error)")
    }
}
