/// A removal of many entries as the log keeps it: kind u8, then the kind's value.
///
///     0 everything · 1 tag: its bytes · 2 storage class: u8
///     3 stored after: i64 · 4 stored before: i64          seconds since 1970
package enum PurgeRecord {
    package static func encode(_ scope: RemovalScope) -> [UInt8] {
        switch scope {
        case .everything: [0]
        case .tag(let tag): [1] + Array(tag.utf8)
        case .storageClass(let kept): [2, kept.rawValue]
        case .storedAfter(let seconds): [3] + littleEndian(seconds)
        case .storedBefore(let seconds): [4] + littleEndian(seconds)
        }
    }

    /// Reads a scope; nil unless `encode` could have written the bytes.
    package static func decode(_ bytes: UnsafeRawBufferPointer) -> RemovalScope? {
        guard let kind = bytes.first else { return nil }
        let value = UnsafeRawBufferPointer(rebasing: bytes[1...])
        switch kind {
        case 0: return value.isEmpty ? .everything : nil
        case 1: return .tag(String(decoding: value, as: UTF8.self))
        case 2:
            guard value.count == 1 else { return nil }
            return StorageClass(rawValue: value[0]).map(RemovalScope.storageClass)
        case 3:
            return value.count == 8 ? .storedAfter(seconds: value.littleEndian(at: 0)) : nil
        case 4:
            return value.count == 8 ? .storedBefore(seconds: value.littleEndian(at: 0)) : nil
        default: return nil
        }
    }

    private static func littleEndian(_ value: Int64) -> [UInt8] {
        withUnsafeBytes(of: value.littleEndian) { [UInt8]($0) }
    }
}
