/// The errors of a fetch.
extension CacheError {
    /// The cache is closing.
    static let cacheShutDown = CacheError(.shutDown, detail: "The cache has been shut down")

    static func misbehaved(_ detail: String) -> CacheError {
        CacheError(.originMisbehaved, detail: detail)
    }

    static func originTimedOut(afterSeconds limit: Double) -> CacheError {
        CacheError(.originTimedOut, detail: "The origin has sent nothing for \(limit) seconds")
    }

    /// A failure of the origin as a `CacheError`; a cancellation is returned unchanged.
    static func originFailure(_ error: any Error) -> any Error {
        if error is CacheError || error is CancellationError { return error }
        return CacheError(.originFailed, detail: String(describing: error))
    }
}
