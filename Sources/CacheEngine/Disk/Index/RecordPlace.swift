/// The place of an entry's newest copy, in 64 bits: in the write queue or in a segment.
///
///      0 …15 segment slot; 0xFFFF: the write queue
///     16 …37 offset in units of 64 bytes; or the number of the queue's node
///     38 …45 size class: how many bytes to read
///     46 …47 frequency: reads since the record was written, at most 3
///     48 …59 zero
///     60 jumbo · 61 session · 62 pinned · 63 raw
///
/// Zero means no place.
package struct RecordPlace: Hashable, Sendable {
    package var bits: UInt64
    package init(bits: UInt64) { self.bits = bits }

    package static let none = Self(bits: 0)
    package static let frequencyMax: UInt64 = 3
    package static let segmentsMax = 0xFFFE
    package static let queueNodesMax = 1 << 22
    private static let queueMark: UInt64 = 0xFFFF

    package struct Flags: OptionSet, Sendable {
        package let rawValue: UInt64
        package init(rawValue: UInt64) { self.rawValue = rawValue }
        package static let jumbo = Self(rawValue: 1 << 60)
        package static let session = Self(rawValue: 1 << 61)
        package static let pinned = Self(rawValue: 1 << 62)
        package static let raw = Self(rawValue: 1 << 63)
    }

    package init(segment: Int, offset: Int, recordBytes: Int, flags: Flags) {
        bits = UInt64(segment) | UInt64(offset / recordUnitBytes) << 16
        bits |= UInt64(SizeClass(recordBytes: recordBytes).rawValue) << 38
        bits |= flags.rawValue
        assert(!isNone && !isQueued, "a place on disk")
        assert(self.segment == segment && self.offset == offset, "reads as written")
        assert(self.flags == flags && frequency == 0, "reads as written")
        assert(recordBytesMax >= min(recordBytes, SizeClass.bytesMax), "covers the record")
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
    package var recordBytesMax: Int {
        SizeClass(rawValue: UInt8(truncatingIfNeeded: bits >> 38)).bytes
    }
    package var flags: Flags { Flags(rawValue: bits & 0xF << 60) }

    package var frequency: UInt64 {
        get { bits >> 46 & 3 }
        set { bits = bits & ~(3 << 46) | min(newValue, Self.frequencyMax) << 46 }
    }

    /// The bits that locate the record, without those that may change while it stays there.
    package var location: UInt64 { bits & (1 << 38 - 1) }
    package func isSameLocation(as other: RecordPlace) -> Bool { location == other.location }

    package var storageClass: StorageClass {
        if flags.contains(.session) { return .session }
        return flags.contains(.pinned) ? .pinned : .permanent
    }
}

extension RecordPlace.Flags {
    package init(_ head: EntryHead.Flags, isRaw: Bool) {
        self = []
        if head.contains(.jumbo) { insert(.jumbo) }
        if head.contains(.session) { insert(.session) }
        if head.contains(.pinned) { insert(.pinned) }
        if isRaw { insert(.raw) }
    }
}

/// A record's size in eight bits, at most 1/16 too large: four bits of exponent, four of mantissa.
package struct SizeClass: Hashable, Sendable {
    package let rawValue: UInt8
    package init(rawValue: UInt8) { self.rawValue = rawValue }

    package static let bytesMax = 31 << 14 * recordUnitBytes

    package init(recordBytes: Int) {
        let units = max(1, (recordBytes + recordUnitBytes - 1) / recordUnitBytes)
        guard units >= 16 else {
            rawValue = UInt8(units)
            return
        }
        var exponent = Int.bitWidth - 1 - units.leadingZeroBitCount - 4
        var mantissa = (units + (1 << exponent) - 1) >> exponent
        if mantissa == 32 { (exponent, mantissa) = (exponent + 1, 16) }
        rawValue = UInt8(min(255, exponent << 4 + 16 + (mantissa - 16)))
    }

    /// The maximum size of a record of this class.
    package var bytes: Int {
        guard rawValue >= 16 else { return Int(rawValue) * recordUnitBytes }
        let (exponent, mantissa) = ((Int(rawValue) - 16) >> 4, (Int(rawValue) & 15) + 16)
        return mantissa << exponent * recordUnitBytes
    }
}
