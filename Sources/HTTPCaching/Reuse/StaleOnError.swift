/// Whether a stale response may replace a failed one (RFC 5861 §4, RFC 9111 §4.2.4).
public enum StaleOnError {
    public enum Failure: Hashable, Sendable {
        /// The origin answered with this status.
        case status(Int)
        /// No response that can be used: no connection, one that broke, a timeout, a malformed head.
        case noResponse
    }

    /// Whether the stored response may be served after this failure of the origin.
    ///
    /// Always `false` under `alwaysValidate`, even for a fresh response.
    public static func allows(
        _ failure: Failure,
        stored: StoredFacts,
        request: RequestFacts,
        nowSeconds: Int64,
        preferences: ReusePreferences
    ) -> Bool {
        if case .status(let code) = failure, !StatusFacts(code).isStaleIfError { return false }
        guard !stored.forbidsStale, preferences.freshness != .alwaysValidate else { return false }
        let staleness = stored.stalenessSeconds(at: nowSeconds)
        guard staleness >= 0 else { return true }
        if Mutant.staleOnErrorForEver.isOn { return true }
        return staleness < windowSeconds(failure, stored, request, preferences)
    }

    private static func windowSeconds(
        _ failure: Failure,
        _ stored: StoredFacts,
        _ request: RequestFacts,
        _ preferences: ReusePreferences
    ) -> Int {
        let window: UInt32
        if stored.flags.contains(.hasStaleIfError) {
            window = stored.staleIfErrorSeconds
        } else if case .noResponse = failure {
            window = preferences.staleOnDisconnectSeconds
        } else {
            window = preferences.staleOnErrorSeconds
        }
        return Int(max(window, request.staleIfErrorSeconds ?? 0))
    }
}
