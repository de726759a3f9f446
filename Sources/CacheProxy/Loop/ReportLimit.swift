/// Which of many equal reports are written: the first, then one in each period.
struct ReportLimit {
    static let periodMilliseconds: Int64 = 10_000

    private var nextMilliseconds = Int64.min
    private var skipped = 0

    /// Returns the number of reports that were skipped before this one; `nil` skips this one too.
    mutating func admit(now milliseconds: Int64) -> Int? {
        guard milliseconds >= nextMilliseconds else {
            skipped += 1
            return nil
        }
        nextMilliseconds = milliseconds + Self.periodMilliseconds
        defer { skipped = 0 }
        return skipped
    }

    static func note(skipped: Int) -> String {
        skipped == 0 ? "" : " (\(skipped) more since the last such line)"
    }
}
