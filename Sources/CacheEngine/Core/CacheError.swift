/// Why the engine could not answer.
///
/// A miss, a stale hit and a damaged record are results, not errors.
public struct CacheError: Error, Hashable, Sendable {
    /// What kind of failure it is; an open set, so a new one does not break a `switch`.
    public struct Code: Hashable, Sendable, CustomStringConvertible {
        /// The code's stable name, as it appears in logs.
        public let description: String

        /// The origin could not be reached or broke off, and nothing stored may stand in.
        public static let originFailed = Code(description: "originFailed")
        /// The origin did not answer in time.
        public static let originTimedOut = Code(description: "originTimedOut")
        /// The origin's answer breaks HTTP's rules: wrong length, invalid fields, too many.
        public static let originMisbehaved = Code(description: "originMisbehaved")
        /// The body ended before its announced length.
        public static let bodyTruncated = Code(description: "bodyTruncated")
        /// The body is larger than the caller's limit.
        public static let bodyTooLarge = Code(description: "bodyTooLarge")
        /// This reader fell too far behind a body that is not stored anywhere.
        public static let readerTooSlow = Code(description: "readerTooSlow")
        /// The policy allows no load and nothing is stored.
        public static let notCached = Code(description: "notCached")
        /// The request's deadline passed.
        public static let deadlineExceeded = Code(description: "deadlineExceeded")
        /// The request itself cannot be sent: no absolute URL, an invalid field.
        public static let requestInvalid = Code(description: "requestInvalid")
        /// A loader asked for the key it is loading.
        public static let loadRecursed = Code(description: "loadRecursed")
        /// The cache was shut down before the request finished.
        public static let shutDown = Code(description: "shutDown")
        /// Another process, or another cache of this one, uses the directory.
        public static let directoryInUse = Code(description: "directoryInUse")
        /// The directory cannot be used: a file in its place, no permission, no room.
        public static let directoryUnusable = Code(description: "directoryUnusable")
        /// The directory holds the files of another version, or damaged ones.
        public static let directoryForeign = Code(description: "directoryForeign")
        /// A file operation failed.
        public static let storageFailed = Code(description: "storageFailed")
        /// The configuration contradicts itself.
        public static let configurationInvalid = Code(description: "configurationInvalid")
    }

    /// What kind of failure this is, for code to branch on.
    public let code: Code
    /// What happened, for people to read.
    public let detail: String
    /// Whether the attempts that failed were other requests'.
    ///
    /// A crowd whose every attempt failed shares the last error.
    public var isShared = false

    /// An error of the given kind.
    public init(_ code: Code, detail: String) {
        self.code = code
        self.detail = detail
    }
}

extension CacheError: CustomStringConvertible {
    /// The code and what happened.
    public var description: String { "\(code): \(detail)" }
}
