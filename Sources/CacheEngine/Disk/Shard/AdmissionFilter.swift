/// Decides which new entries are written.
///
/// With second use, a replacement of an entry on disk is always written.
struct AdmissionFilter {
    /// Keys remembered for second use; they take 512 KiB a shard, only if the rule is in use.
    private static let rememberedCount = 1 << 16
    private static let daySeconds: UInt32 = 86_400

    private let rule: DiskConfiguration.Admission
    /// Identities offered before, each at the place its hash gives; newer ones overwrite older.
    private var offered: [UInt64] = []
    private var dayStart: UInt32 = 0
    private var dayBytes = 0

    init(_ rule: DiskConfiguration.Admission) {
        self.rule = rule
        if rule == .secondUse { offered = [UInt64](repeating: 0, count: Self.rememberedCount) }
    }

    mutating func admits(_ head: EntryHead, isKnown: Bool, nowSeconds: UInt32) -> Bool {
        switch rule {
        case .always: return true
        case .secondUse:
            if isKnown { return true }
            let home = Int(head.hash.identity >> 24) & (Self.rememberedCount - 1)
            defer { offered[home] = head.hash.identity }
            return offered[home] == head.hash.identity
        case .bytesPerDay(let limit):
            // A clock that is set back starts a new day as well.
            if nowSeconds < dayStart || nowSeconds - dayStart >= Self.daySeconds {
                (dayStart, dayBytes) = (nowSeconds, 0)
            }
            guard dayBytes + head.entrySizeBytes <= limit.bytes else { return false }
            dayBytes += head.entrySizeBytes
            return true
        }
    }
}
