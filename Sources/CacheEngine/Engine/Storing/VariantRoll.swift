/// The variants that an index has counted, and the time since which it has counted them.
///
/// Each counts once: a part of it, or the same variant after its eviction, is not another variant.
/// The roll follows the sets of the index, and is read only when a variant is stored:
///
///     since u32, seconds · (key u32)*
struct VariantRoll: Hashable, Sendable {
    /// Beyond this number the oldest keys are forgotten, and may be counted twice.
    static let keysMax = 256
    /// The most encoded words.
    static let wordsMax = 1 + keysMax
    /// The variants of a nonce stay for this time at least, however many others are requested: a
    /// client that requests one variant after the other cannot displace the others'.
    static let secondsMin: Int64 = 60

    private var sinceSeconds: UInt32
    private var keys: [UInt32] = []

    init(sinceSeconds: Int64) { self.sinceSeconds = UInt32(clamping: sinceSeconds) }

    /// The roll of an index; `nil` if the index has no roll.
    init?(_ entry: Entry) {
        guard VariantIndex(entry) != nil else { return nil }
        let words = entry.withMetadata { bytes -> [UInt32] in
            let count = Int(bytes.littleEndian(at: 4, as: UInt32.self))
            return (0..<count).map { bytes.littleEndian(at: bytes.count - 4 * (count - $0)) }
        }
        guard let since = words.first else { return nil }
        sinceSeconds = since
        keys = Array(words.dropFirst())
    }

    /// The encoded words.
    var words: [UInt32] { [sinceSeconds] + keys }

    func contains(_ key: KeyHash) -> Bool { keys.contains(Self.short(key)) }

    /// Whether its variants have been kept for `secondsMin`.
    ///
    /// A roll that began in the future is from a run whose clock was ahead: its time is unknown, and
    /// it ends.
    func mayEnd(atSeconds now: Int64) -> Bool {
        let passed = now - Int64(sinceSeconds)
        return passed >= Self.secondsMin || passed < 0
    }

    /// The same roll, with its time by a clock that is `seconds` ahead.
    func shifted(bySeconds seconds: Int64) -> VariantRoll {
        var shifted = self
        let since = Int64(sinceSeconds).addingReportingOverflow(seconds)
        shifted.sinceSeconds = since.overflow ? sinceSeconds : UInt32(clamping: since.partialValue)
        return shifted
    }

    mutating func add(_ key: KeyHash) {
        guard !contains(key) else { return }
        keys.append(Self.short(key))
        if keys.count > Self.keysMax { keys.removeFirst() }
        assert(contains(key), "reads as written")
    }

    private static func short(_ key: KeyHash) -> UInt32 { UInt32(truncatingIfNeeded: key.identity) }
}
