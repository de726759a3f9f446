/// The result of storing an entry.
public enum StoreOutcome: Hashable, Sendable {
    /// The entry was stored.
    case stored
    /// The entry was not stored, and the previous one was removed.
    case refused(Reason)

    /// The reason why a store refused an entry.
    ///
    /// A later version may add cases: a `switch` over reasons needs a `default`.
    public enum Reason: String, Hashable, Sendable, CaseIterable {
        /// The entry exceeds the store's limit for one entry.
        case tooLarge = "too-large"
        /// The store's queue of unwritten entries is full.
        case queueFull = "queue-full"
        /// The device failed or is full.
        case deviceFailed = "device-failed"
        /// The store is being closed.
        case closed
        /// An admission rule refused the entry.
        case notAdmitted = "not-admitted"
        /// A part (206) whose `Content-Range` is missing, has no size, or contradicts its body, or
        /// whose head may lack fields, because it came for a request with `If-Range`.
        case invalidPart = "invalid-part"
        /// A later removal covers the entry, or a newer response has come before its end.
        case removedMeanwhile = "removed-meanwhile"
    }
}
