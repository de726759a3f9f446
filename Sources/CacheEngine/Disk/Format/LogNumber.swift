/// The bounds of the numbers in a log: generations of segments and sequence numbers of records.
///
/// Numbers only increase, and no shard gets near the bounds. Forged bytes may name any number.
enum LogNumber {
    /// The largest sequence number of a record that a replay takes for sound.
    static let sequenceMax: UInt64 = 1 << 62
    /// More numbers than a shard takes from one opening to the next.
    private static let takenMax: UInt64 = 1 << 40

    /// Whether a replay takes a record with this sequence number for sound.
    ///
    /// Larger ones count as damage: the shard must be able to count on.
    static func isSound(_ sequence: UInt64) -> Bool {
        sequence <= sequenceMax || Mutant.believesEveryNumber.isOn
    }

    /// Whether the numbers after this one may pass the bound before the next opening.
    static func isUsedUp(_ number: UInt64) -> Bool { number > sequenceMax - takenMax }
}

extension SegmentHeader {
    /// The larger of the numbers from which a shard counts on.
    var numberMax: UInt64 { max(generation, firstSequence) }

    /// Whether a shard may have named this oldest generation; the next one is that of a retired
    /// segment.
    ///
    /// A larger one would end segments that are opened later.
    var hasSoundOldest: Bool { oldestGeneration == 0 || oldestGeneration - 1 <= generation }
}
