import HTTPCaching

/// A stored response: an entry with its metadata decoded.
///
/// The metadata of a response:
///
///     0   kind u8 = 1 · 0 u8 · 0 u16 · fields count u32
///     8   StoredFacts, 48 bytes
///     56  own lifetime u32, seconds                             all ones: none
///     60  fields · user info count u32 · user info · parts
///
/// The own lifetime is the application's, and replaces the lifetime that the fields give.
/// `parts` is there for partial content only: complete size i64 (-1 unknown), then the first and
/// the last-plus-one position of each part, i64 each. The body holds the parts one after the other.
struct StoredResponse: Sendable {
    let stored: StoredEntry
    let facts: StoredFacts
    private let fieldsCount: Int
    private let userInfoCount: Int

    static let kind: UInt8 = 1
    static let factsOffset = 8
    private static let ownLifetimeOffset = 56
    static let fieldsOffset = 60

    var entry: Entry { stored.entry }

    /// Returns `nil` if the entry is not a response that this version would write.
    init?(_ stored: StoredEntry) {
        var facts: StoredFacts?
        var counts = (fields: 0, userInfo: 0)
        stored.entry.withMetadata { bytes in
            guard bytes.count >= Self.fieldsOffset + 4, bytes[0] == Self.kind else { return }
            counts.fields = Int(bytes.littleEndian(at: 4, as: UInt32.self))
            guard bytes.count - Self.fieldsOffset - 4 >= counts.fields else { return }
            let infoOffset = Self.fieldsOffset + counts.fields
            counts.userInfo = Int(bytes.littleEndian(at: infoOffset, as: UInt32.self))
            facts = StoredFacts(
                decoding: .init(rebasing: bytes[Self.factsOffset..<Self.ownLifetimeOffset])
            )
        }
        guard let facts else { return nil }
        self.stored = stored
        self.facts = facts
        (fieldsCount, userInfoCount) = counts
        let rest = stored.entry.metadata.count - Self.fieldsOffset - fieldsCount - 4 - userInfoCount
        guard facts.flags.contains(.isPartial) else {
            guard rest == 0 else { return nil }
            return
        }
        guard rest >= 24, rest % 16 == 8, let parts, parts.heldBytes == bodyCount else {
            return nil
        }
    }

    /// The stored fields with `extra` bytes of room after them.
    ///
    /// The bytes were checked when they were stored, and by checksum when they came from a disk.
    func fields(reserving extra: Int = 0) -> FieldSection {
        withEncodedFields { FieldSection(trusted: $0, reserving: extra) }
    }

    /// Calls `read` with the stored fields as they are encoded in the entry.
    func withEncodedFields<Result>(_ read: (UnsafeRawBufferPointer) -> Result) -> Result {
        stored.entry.withMetadata { bytes in
            let end = Self.fieldsOffset + fieldsCount
            return read(UnsafeRawBufferPointer(rebasing: bytes[Self.fieldsOffset..<end]))
        }
    }

    /// The stored fields as they are encoded in the entry.
    var encodedFields: ByteChunk {
        entry.metadata[Self.fieldsOffset..<Self.fieldsOffset + fieldsCount]
    }

    /// The lifetime that the application gave.
    var ownLifetimeSeconds: UInt32? {
        let seconds = stored.entry.withMetadata {
            $0.littleEndian(at: Self.ownLifetimeOffset, as: UInt32.self)
        }
        return seconds == .max ? nil : seconds
    }

    var userInfo: ByteChunk? {
        guard userInfoCount > 0 else { return nil }
        let offset = Self.fieldsOffset + fieldsCount + 4
        return entry.metadata[offset..<offset + userInfoCount]
    }

    /// The parts of the whole that the body holds; `nil` if the response is complete.
    var parts: PartialBody? {
        guard facts.flags.contains(.isPartial) else { return nil }
        return stored.entry.withMetadata { bytes in
            var offset = Self.fieldsOffset + fieldsCount + 4 + userInfoCount
            guard bytes.count - offset >= 8 else { return nil }
            let size = bytes.littleEndian(at: offset, as: Int64.self)
            var parts = PartialBody(bodySize: size >= 0 ? Int(size) : nil)
            offset += 8
            while bytes.count - offset >= 16 {
                let lower = Int(bytes.littleEndian(at: offset, as: Int64.self))
                let upper = Int(bytes.littleEndian(at: offset + 8, as: Int64.self))
                guard lower >= 0, lower < upper else { return nil }
                let range = ContentRange(range: lower..<upper, bodySize: parts.bodySize)
                guard parts.add(range) == .added else { return nil }
                offset += 16
            }
            return parts
        }
    }

    /// Whether the entry holds parts of the version that has these fields.
    static func isPart(_ entry: Entry, ofVersion fields: FieldSection) -> Bool {
        guard let stored = StoredResponse(StoredEntry(entry)),
            stored.facts.flags.contains(.isPartial)
        else { return false }
        return PartialBody.mayCombine(stored: stored.fields(), new: fields)
    }

    /// The whole stored body.
    var body: BodyStream {
        if let reader = stored.detachedBody { return BodyStream(reader) }
        return BodyStream(stored.entry.body)
    }

    var bodyCount: Int { stored.detachedBody?.count ?? entry.bodyCount }

    /// The stored bytes at `range`, counted from the beginning of the stored body.
    func body(_ range: Range<Int>) -> BodyStream {
        if let reader = stored.detachedBody { return BodyStream(reader, range: range) }
        return BodyStream(stored.entry.body[range])
    }

    /// Metadata in the form above.
    static func metadata(
        facts: StoredFacts,
        fields: FieldSection,
        userInfo: ByteChunk?,
        ownLifetimeSeconds: UInt32? = nil,
        parts: PartialBody? = nil
    ) -> [UInt8] {
        var bytes: [UInt8] = []
        bytes.reserveCapacity(fieldsOffset + fields.bytes.count + 32 + (userInfo?.count ?? 0))
        bytes.append(contentsOf: repeatElement(0, count: fieldsOffset))
        bytes[0] = kind
        bytes.withUnsafeMutableBytes { target in
            target.setLittleEndian(UInt32(fields.bytes.count), at: 4)
            target.setLittleEndian(ownLifetimeSeconds ?? .max, at: ownLifetimeOffset)
            facts.encode(into: .init(rebasing: target[factsOffset...]))
        }
        bytes.append(contentsOf: fields.bytes)
        bytes.append(littleEndian: UInt32(userInfo?.count ?? 0))
        userInfo?.withUnsafeBytes { bytes.append(contentsOf: $0) }
        if let parts {
            bytes.append(littleEndian: Int64(parts.bodySize ?? -1))
            for part in parts.parts {
                bytes.append(littleEndian: Int64(part.lowerBound))
                bytes.append(littleEndian: Int64(part.upperBound))
            }
        }
        let partsBytes = parts.map { 8 + 16 * $0.parts.count } ?? 0
        assert(
            bytes.count
                == fieldsOffset + fields.bytes.count + 4 + (userInfo?.count ?? 0) + partsBytes,
            "each part has its place"
        )
        return bytes
    }
}
