/// The state of one segment's file that readers and the writer share.
struct SegmentInfo: Sendable {
    /// A segment's life.
    ///
    ///     absent ──create──▶ clean ──open──▶ open ──seal──▶ sealed ──reclaim──▶ clean
    ///        ▲─────────────unlink──────────────┘
    ///
    /// An open segment whose first batch fails is clean again. A sealed one whose header cannot be
    /// written is unlinked, and absent when its last reader has left.
    enum State: UInt8, Sendable {
        case absent, clean, open, sealed
    }

    var state = State.absent
    var file = OpenFile(descriptor: -1)
    var seal = SegmentSeal(base: 0)
    var generation: UInt64 = 0
    /// The number of readers; while it is not 0, the file is neither overwritten nor closed.
    var leases: Int32 = 0
    /// The end of the records.
    var recordsEnd = 0
    var sequenceMin = UInt64.max
    var sequenceMax: UInt64 = 0
    /// The largest sequence number of a purge among the records.
    var purgeSequenceMax: UInt64 = 0

    /// The number by which the segment makes room in turn with bodies: one without records comes
    /// first.
    var age: UInt64 { sequenceMax == 0 ? 0 : sequenceMin }
}
