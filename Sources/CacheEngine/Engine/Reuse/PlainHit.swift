import HTTPCaching

/// The usual hit: a GET without directives, and without a condition but `If-None-Match`, and a
/// response that is whole and fresh.
///
/// It is read from the entry's bytes in place, without a copy. It decides as `StoredResponse`,
/// `ReuseDecision` and `Conditional` would; every other case is left to them.
struct PlainHit {
    let fresh: StoredFacts.Fresh
    let createdSeconds: Int64
    let isMemoryOnly: Bool
    /// Where the entry was found.
    let tier: CacheInfo.Tier
    var remainingSeconds: Int { fresh.lifetimeSeconds - fresh.ageSeconds }
    /// The position of the stored fields in the entry.
    let fields: Range<Int>
    /// The position of the body in the entry; empty in a 304.
    private(set) var body: Range<Int>
    /// Whether the response is a 304, because the client has it.
    private(set) var isNotModified = false
    var status: Int { isNotModified ? 304 : Int(fresh.status) }

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

    /// Makes the response a 304 if `If-None-Match` of a request with these fields names it (RFC 9110
    /// §13.1.2).
    mutating func evaluateIfNoneMatch(of request: FieldSection, on entry: borrowing Entry) {
        // RFC 9110 §13.2.1: conditions are ignored if the response is not a success.
        guard (200...299).contains(fresh.status) else { return }
        let bytes = entry.storage.unsafeBytes(fields.upperBound)
        isNotModified = Conditional.ifNoneMatch(
            of: request,
            names: UnsafeRawBufferPointer(rebasing: bytes[fields])
        )
        if isNotModified { body = body.lowerBound..<body.lowerBound }
        extendLifetime(entry)
    }
}
