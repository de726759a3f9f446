/// What readers and the writer know about one segment's file.
struct SegmentInfo: Sendable {
    /// A segment's life.
    ///
    ///     absent ──create──▶ clean ──open──▶ open ──seal──▶ sealed ──reclaim──▶ clean
    ///        ▲─────────────unlink──────────────┘
    enum State: UInt8, Sendable {
        case absent, clean, open, sealed
    }

    var state = State.absent
    var file = OpenFile(descriptor: -1)
    var seal = SegmentSeal(base: 0)
    var generation: UInt64 = 0
    /// Readers that hold the file: it is neither overwritten nor closed meanwhile.
    var leases: Int32 = 0
    /// Where the records end.
    var recordsEnd = 0
    var sequenceMin = UInt64.max
    var sequenceMax: UInt64 = 0
    /// The largest sequence number of a purge among the records.
    var purgeSequenceMax: UInt64 = 0
}
