/// The tags of one entry, encoded as the entry keeps them: `(length u16 · bytes)*`.
package struct TagList: Hashable, Sendable {
    package private(set) var bytes: [UInt8] = []

    package init() {}

    /// Encodes `tags`; nil when they need more room than an entry has for them.
    package init?(_ tags: some Sequence<String>) {
        for tag in tags {
            guard append(tag) else { return nil }
        }
    }

    /// Appends one tag; false when it does not fit.
    package mutating func append(_ tag: String) -> Bool {
        let count = tag.utf8.count
        guard bytes.count + 2 + count <= EntryHead.tagsCountMax else { return false }
        bytes.append(UInt8(truncatingIfNeeded: count))
        bytes.append(UInt8(truncatingIfNeeded: count >> 8))
        bytes.append(contentsOf: tag.utf8)
        return true
    }

    /// Calls `visit` with each tag in `bytes`; stops at the first that does not fit.
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

    /// Whether `tag` is among the tags in `bytes`.
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
    /// Takes over tags in encoded form.
    package init(encoded: UnsafeRawBufferPointer) {
        self.init()
        Self.forEach(in: encoded) { _ = append(String(decoding: $0, as: UTF8.self)) }
    }
}
