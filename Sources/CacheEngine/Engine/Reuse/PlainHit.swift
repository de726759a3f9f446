import HTTPCaching

/// The usual hit: a request without directives or conditions, and a response that is whole and
/// fresh.
///
/// It is read from the entry's bytes in place, without a copy. It decides as `StoredResponse` and
/// `ReuseDecision` would; every other case is left to them.
struct PlainHit {
    let fresh: StoredFacts.Fresh
    let createdSeconds: Int64
    let isMemoryOnly: Bool
    /// Where the entry was found.
    let tier: CacheInfo.Tier
    var remainingSeconds: Int { fresh.lifetimeSeconds - fresh.ageSeconds }
    /// The position of the stored fields in the entry.
    let fields: Range<Int>
    /// The position of the body in the entry.
    let body: Range<Int>

    /// Returns `nil` if the entry is not a response, is stale, or needs more than its fields and
    /// body.
    init?(_ entry: borrowing Entry, in tier: CacheInfo.Tier = .memory, nowSeconds: Int64) {
        defer { extendLifetime(entry) }
        let layout = EntryLayout(trusted: entry.storage.unsafeHead)
        let metadata = layout.metadata
        let bytes = entry.storage.unsafeBytes(metadata.upperBound)
        let fieldsStart = metadata.lowerBound + StoredResponse.fieldsOffset
        guard metadata.upperBound - fieldsStart >= 4,
            bytes[metadata.lowerBound] == StoredResponse.kind
        else { return nil }
        let fieldsCount = Int(bytes.littleEndian(at: metadata.lowerBound + 4, as: UInt32.self))
        // Only the count of the user info follows the fields, and it is zero.
        guard metadata.upperBound - fieldsStart - 4 == fieldsCount,
            bytes.littleEndian(at: fieldsStart + fieldsCount, as: UInt32.self) == 0,
            let fresh = StoredFacts.Fresh(
                .init(rebasing: bytes[(metadata.lowerBound + StoredResponse.factsOffset)...]),
                nowSeconds: nowSeconds
            )
        else { return nil }
        self.fresh = fresh
        let flags = EntryHead.Flags(rawValue: bytes.littleEndian(at: EntryHead.Offset.flags))
        self.tier = tier
        isMemoryOnly = flags.contains(.memoryOnly)
        let created = bytes.littleEndian(at: EntryHead.Offset.createdSeconds, as: UInt32.self)
        createdSeconds = Int64(created)
        fields = fieldsStart..<fieldsStart + fieldsCount
        body = layout.body
    }
}
