/// A log record about many entries at once: kind u8, then the value of that kind.
///
///     0 everything · 1 tag: its bytes · 2 storage class: u8
///     3 stored after: i64 · 4 stored before: i64          seconds since 1970
///     5 stale: the tag's bytes · 6 everything stale
package enum PurgeRecord: Hashable, Sendable {
    /// Removes every earlier entry in the scope.
    case removal(RemovalScope)
    /// Makes every earlier entry with the tag stale.
    case stale(tag: String)
    /// Makes every earlier entry stale; the origin must confirm it before its next use.
    case everythingStale

    package var encoded: [UInt8] {
        let bytes: [UInt8] =
            switch self {
            case .removal(.everything): [0]
            case .removal(.tag(let tag)): [1] + Array(tag.utf8)
            case .removal(.storageClass(let kept)): [2, kept.rawValue]
            case .removal(.storedAfter(let seconds)): [3] + Self.littleEndian(seconds)
            case .removal(.storedBefore(let seconds)): [4] + Self.littleEndian(seconds)
            case .stale(let tag): [5] + Array(tag.utf8)
            case .everythingStale: [6]
            }
        assert(bytes.withUnsafeBytes { Self(decoding: $0) } == self, "reads as written")
        return bytes
    }

    /// The most bytes that the record takes in a segment.
    var recordBytes: Int { EntryHead.sizeBytes + encoded.count + recordUnitBytes }

    /// Reads a record's body; `nil` if `encoded` could not have made the bytes.
    package init?(decoding bytes: UnsafeRawBufferPointer) {
        guard let kind = bytes.first else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
        switch kind {
        case 0 where value.isEmpty: self = .removal(.everything)
        case 1: self = .removal(.tag(String(decoding: value, as: UTF8.self)))
        case 2:
            guard value.count == 1, let kept = StorageClass(rawValue: value[0]) else { return nil }
            self = .removal(.storageClass(kept))
        case 3 where value.count == 8:
            self = .removal(.storedAfter(unixSeconds: value.littleEndian(at: 0)))
        case 4 where value.count == 8:
            self = .removal(.storedBefore(unixSeconds: value.littleEndian(at: 0)))
        case 5: self = .stale(tag: String(decoding: value, as: UTF8.self))
        case 6 where value.isEmpty: self = .everythingStale
        default: return nil
        }
    }

    private static func littleEndian(_ value: Int64) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { [UInt8]($0) }
    }
}
