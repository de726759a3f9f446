/// The place of an entry's newest copy, in 64 bits: in the write queue or in a segment.
///
///      0 …15 segment slot; 0xFFFF: the write queue
///     16 …37 offset in units of 64 bytes; or the number of the queue's node
///     38 …57 size of the record in units of 64 bytes
///     58 …59 frequency: uses since the record was written, at most 3
///     60 jumbo · 61 session · 62 pinned · 63 raw; 61 and 62: an index of variants, pinned unless raw
///
/// Zero means no place.
package struct RecordPlace: Hashable, Sendable {
    package var bits: UInt64
    package init(bits: UInt64) { self.bits = bits }

    package static let none = Self(bits: 0)
    package static let frequencyMax: UInt64 = 3
    /// From this frequency on a reclaim writes the record again.
    package static let frequencyToKeep: UInt64 = 2
    package static let segmentsMax = 0xFFFE
    /// The size of the largest record; its place has room for twice as much.
    package static let recordBytesMax = 31 << 20
    package static let queueNodesMax = 1 << 22
    private static let queueMark: UInt64 = 0xFFFF
    private static let unitsMax = (1 << 20) - 1

    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt64
        package init(rawValue: UInt64) { self.rawValue = rawValue }
        package static let jumbo = Self(rawValue: 1 << 60)
        package static let session = Self(rawValue: 1 << 61)
        package static let pinned = Self(rawValue: 1 << 62)
        package static let raw = Self(rawValue: 1 << 63)
        /// No response is of two classes.
        fileprivate static let index: Self = [.session, .pinned]
    }

    package init(segment: Int, offset: Int, recordBytes: Int, flags: Flags) {
        bits = UInt64(segment) | UInt64(offset / recordUnitBytes) << 16
        // A damaged footer may claim a larger record, which reads as damaged.
        bits |= UInt64(min(recordBytes / recordUnitBytes, Self.unitsMax)) << 38
        bits |= flags.rawValue
        assert(!isNone && !isQueued, "a place on disk")
        assert(self.segment == segment && self.offset == offset, "reads as written")
        assert(self.flags == flags && frequency == 0, "reads as written")
        assert(self.recordBytes >= min(recordBytes, Self.recordBytesMax), "covers the record")
    }

    package init(queueNode: Int, flags: Flags) {
        bits = Self.queueMark | UInt64(queueNode) << 16 | 1 << 38 | flags.rawValue
        assert(isQueued && self.queueNode == queueNode && self.flags == flags, "reads as written")
    }

    package var isNone: Bool { bits == 0 }
    package var isQueued: Bool { bits & 0xFFFF == Self.queueMark }
    package var segment: Int { Int(bits & 0xFFFF) }
    package var offset: Int { Int(bits >> 16 & 0x3F_FFFF) * recordUnitBytes }
    package var queueNode: Int { Int(bits >> 16 & 0x3F_FFFF) }
    package var recordBytes: Int { (Int(bits >> 38) & Self.unitsMax) * recordUnitBytes }
    package var flags: Flags { Flags(rawValue: bits & 0xF << 60) }

    package var frequency: UInt64 {
        get { bits >> 58 & 3 }
        set { bits = bits & ~(3 << 58) | min(newValue, Self.frequencyMax) << 58 }
    }

    /// The bits that locate the record, without those that may change while it stays there.
    package var location: UInt64 { bits & (1 << 38 - 1) }
    package func isSameLocation(as other: RecordPlace) -> Bool { location == other.location }

    /// The class of the response; `nil` for an index of variants, which is in no class.
    package var storageClass: StorageClass? {
        if isIndex { return nil }
        if flags.contains(.session) { return .session }
        return flags.contains(.pinned) ? .pinned : .permanent
    }

    package var isPinned: Bool { flags.contains(.pinned) && !(isIndex && flags.contains(.raw)) }
    private var isIndex: Bool { flags.isSuperset(of: .index) }
}

extension RecordPlace.Flags {
    package init(_ head: EntryHead.Flags, isRaw: Bool) {
        if head.contains(.index), !Mutant.filesIndexesUnderClasses.isOn {
            self = head.contains(.pinned) ? .index : [.index, .raw]
            return
        }
        self = []
        if head.contains(.jumbo) { insert(.jumbo) }
        if head.contains(.session) { insert(.session) }
        if head.contains(.pinned) { insert(.pinned) }
        if isRaw { insert(.raw) }
    }
}
