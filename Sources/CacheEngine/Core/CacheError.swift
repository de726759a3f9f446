/// The reason why the engine could not answer a request.
///
/// A miss, a stale hit and a damaged record are results, not errors.
public struct CacheError: Error, Hashable, Sendable {
    /// The kind of a failure; an open set, so that a new code does not break a `switch`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The stable name of the code, for logs.
        public let description: String

        /// The origin failed, and no stored response may be served instead.
        public static let originFailed = Code(description: "originFailed")
        /// No connection to the origin could be made: refused, no route, unknown host name.
        ///
        /// An origin throws this code only for faults that do not depend on the request's content.
        /// For a limited time the engine then answers other requests for the same key with this
        /// error, without asking the origin.
        public static let originUnreachable = Code(description: "originUnreachable")
        /// The origin did not respond in time.
        public static let originTimedOut = Code(description: "originTimedOut")
        /// The origin's response violates HTTP: wrong length, invalid fields, too many fields.
        public static let originMisbehaved = Code(description: "originMisbehaved")
        /// The body ended before its announced length.
        public static let bodyTruncated = Code(description: "bodyTruncated")
        /// The body is larger than the caller's limit.
        public static let bodyTooLarge = Code(description: "bodyTooLarge")
        /// The reader fell too far behind a body that is not stored.
        public static let readerTooSlow = Code(description: "readerTooSlow")
        /// The policy allows no request to the origin, and nothing is stored.
        public static let notCached = Code(description: "notCached")
        /// The request's deadline passed.
        public static let deadlineExceeded = Code(description: "deadlineExceeded")
        /// The request cannot be sent: its URL is not absolute, or a field is invalid.
        public static let requestInvalid = Code(description: "requestInvalid")
        /// The origin requested the URL that it is fetching.
        public static let loadRecursed = Code(description: "loadRecursed")
        /// The cache was shut down before the request finished.
        public static let shutDown = Code(description: "shutDown")
        /// Another process, or another cache in this process, uses the directory.
        public static let directoryInUse = Code(description: "directoryInUse")
        /// The directory is unusable: it is a file, or permission or space is missing.
        public static let directoryUnusable = Code(description: "directoryUnusable")
        /// The directory holds files of another version, or damaged files.
        public static let directoryForeign = Code(description: "directoryForeign")
        /// A file operation failed.
        public static let storageFailed = Code(description: "storageFailed")
        /// The application's store, or the disk, did not return in time.
        public static let storageTimedOut = Code(description: "storageTimedOut")
        /// A purge was applied on this machine, and the log of the fleet has not confirmed it.
        public static let purgeNotShared = Code(description: "purgeNotShared")
        /// The address of the fleet's log cannot be used, or the log cannot be reached.
        public static let fleetFailed = Code(description: "fleetFailed")
        /// The settings of the configuration contradict each other.
        public static let configurationInvalid = Code(description: "configurationInvalid")
    }

    /// The kind of the failure, for code to branch on.
    public let code: Code
    /// A description of the failure, for people to read.
    public let detail: String
    /// Whether all failed attempts were those of other requests.
    ///
    /// Requests that wait together share the last error if every attempt failed.
    public var isShared = false

    /// An error of this kind.
    public init(_ code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension CacheError: CustomStringConvertible {
    /// The code and the description.
    public var description: String { "\(code): \(detail)" }
}

/// The errors that several steps of the engine report.
extension CacheError {
    /// The cache is closing.
    static let cacheShutDown = CacheError(.shutDown, detail: "The cache has been shut down")

    /// The fetch for one request alone has told it nothing, which no step of a fetch does.
    static let nothingTold = CacheError(
        .originFailed,
        detail: "The fetch ended without a response or an error; report this fault of the cache"
    )

    static func misbehaved(_ detail: String) -> CacheError {
        CacheError(.originMisbehaved, detail: detail)
    }

    static func bodyEnded(after received: Int, of expected: Int) -> CacheError {
        CacheError(
            .bodyTruncated,
            detail: "The body ended after \(received) of \(expected) bytes"
        )
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
