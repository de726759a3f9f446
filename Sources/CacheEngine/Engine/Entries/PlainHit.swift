import HTTPCaching

/// What a request without wishes of its own gets of a response that is whole and fresh.
///
/// The usual hit, read from the entry's bytes where they lie, and holding none of them. Whatever
/// takes more than that is nil here, and is left to `StoredResponse` and `ReuseDecision`, whose
/// answer this anticipates.
struct PlainHit {
    let fresh: StoredFacts.Fresh
    let createdSeconds: Int64
    /// Where the stored fields lie in the entry.
    let fields: Range<Int>
    /// Where the body lies in the entry.
    let body: Range<Int>

    /// Nil for an entry that is no response, or for one with something to be said about.
    init?(_ entry: borrowing Entry, nowSeconds: Int64) {
        defer { extendLifetime(entry) }
        let layout = EntryLayout(trusted: entry.storage.unsafeHead)
        let metadata = layout.metadata
        let bytes = entry.storage.unsafeBytes(metadata.upperBound)
        let fieldsStart = metadata.lowerBound + StoredResponse.fieldsOffset
        guard metadata.upperBound - fieldsStart >= 4,
            bytes[metadata.lowerBound] == StoredResponse.kind
        else { return nil }
        let fieldsCount = Int(bytes.littleEndian(at: metadata.lowerBound + 4, as: UInt32.self))
        // Nothing behind the fields but the count of the user info, which is zero.
        guard metadata.upperBound - fieldsStart - 4 == fieldsCount,
            bytes.littleEndian(at: fieldsStart + fieldsCount, as: UInt32.self) == 0,
            let fresh = StoredFacts.Fresh(
                .init(rebasing: bytes[(metadata.lowerBound + StoredResponse.factsOffset)...]),
                nowSeconds: nowSeconds
            )
        else { return nil }
        self.fresh = fresh
        createdSeconds = Int64(bytes.littleEndian(at: 44, as: UInt32.self))
        fields = fieldsStart..<fieldsStart + fieldsCount
        body = layout.body
    }
}
