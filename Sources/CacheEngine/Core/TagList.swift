/// The tags of one entry in the entry's encoding: `(length u16 · bytes)*`.
package struct TagList: Hashable, Sendable {
    /// The length of the longest tag that an entry can carry, in bytes.
    package static let tagBytesMax = EntryHead.tagsCountMax - 2

    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Encodes `tags`; returns `nil` if they exceed the space of an entry for tags.
    package init?(_ tags: some Sequence<String>) {
        for tag in tags {
            guard append(tag) else { return nil }
        }
    }

    /// Appends one tag; returns `false` if the space for tags does not suffice.
    package mutating func append(_ tag: String) -> Bool {
        let count = tag.utf8.count
        guard bytes.count + 2 + count <= EntryHead.tagsCountMax else { return false }
        bytes.append(UInt8(truncatingIfNeeded: count))
        bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        bytes.append(contentsOf: tag.utf8)
        return true
    }

    /// Calls `visit` with each tag in `bytes`; stops at the first incomplete tag.
    package static func forEach(
        in bytes: UnsafeRawBufferPointer,
        _ visit: (UnsafeRawBufferPointer) -> Void
    ) {
        var offset = 0
        while bytes.count - offset >= 2 {
            let count = Int(bytes.littleEndian(at: offset, as: UInt16.self))
            guard bytes.count - offset - 2 >= count else { return }
            visit(.init(rebasing: bytes[offset + 2..<offset + 2 + count]))
            offset += 2 + count
        }
    }

    /// Whether the tags in `bytes` include `tag`.
    package static func contains(
        _ tag: UnsafeRawBufferPointer,
        in bytes: UnsafeRawBufferPointer
    ) -> Bool {
        var isFound = false
        forEach(in: bytes) { if $0.hasSameBytes(as: tag) { isFound = true } }
        return isFound
    }
}

extension TagList {
    /// The decoded tags.
    package var tags: [String] { bytes.withUnsafeBytes { Self.decoded($0) } }

    /// The tags in `bytes`.
    static func decoded(_ bytes: UnsafeRawBufferPointer) -> [String] {
        var tags: [String] = []
        forEach(in: bytes) { tags.append(String(decoding: $0, as: UTF8.self)) }
        return tags
    }

    /// The tags of `tags` that are not among `others`.
    ///
    /// Bytes are compared, as purges do: for a purge, two texts that Unicode calls equal are two tags.
    package static func tags(_ tags: [String], without others: [String]) -> [String] {
        guard !tags.isEmpty, !others.isEmpty else { return tags }
        let others = Set(others.map { Array($0.utf8) })
        return tags.filter { !others.contains(Array($0.utf8)) }
    }

    /// Copies tags in encoded form.
    package init(encoded: UnsafeRawBufferPointer) {
        self.init()
        Self.forEach(in: encoded) { _ = append(String(decoding: $0, as: UTF8.self)) }
    }
}
