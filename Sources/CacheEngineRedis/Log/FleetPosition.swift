/// A place in the log of a fleet: an epoch, and a number within it.
///
/// The log's server counts the epochs: each restart, failover or loss of the log's end begins a new
/// one, so that later purges always have larger positions. Written `<epoch>-<number>`, a position is
/// the ID of an entry of the stream.
struct FleetPosition: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// 24 bits of epoch above 40 bits of number.
    static let numberBits: UInt64 = 40

    /// The position before the first entry.
    static let zero = FleetPosition(rawValue: 0)

    let rawValue: UInt64

    var epoch: UInt64 { rawValue >> Self.numberBits }
    var number: UInt64 { rawValue & (1 << Self.numberBits - 1) }

    init(rawValue: UInt64) { self.rawValue = rawValue }

    /// Returns `nil` if a part exceeds its bits.
    init?(epoch: UInt64, number: UInt64) {
        guard epoch < 1 << (64 - Self.numberBits), number < 1 << Self.numberBits else { return nil }
        rawValue = epoch << Self.numberBits | number
    }

    /// Reads the ID of an entry.
    init?(_ text: some StringProtocol) {
        let parts = text.split(separator: "-", omittingEmptySubsequences: false)
        guard parts.count == 2, let epoch = Self.number(parts[0]),
            let number = Self.number(parts[1])
        else { return nil }
        self.init(epoch: epoch, number: number)
    }

    /// Digits alone: `UInt64` would also read a sign.
    private static func number(_ digits: some StringProtocol) -> UInt64? {
        digits.utf8.allSatisfy { (0x30...0x39).contains($0) } ? UInt64(digits) : nil
    }

    var description: String { "\(epoch)-\(number)" }

    static func < (one: FleetPosition, other: FleetPosition) -> Bool {
        one.rawValue < other.rawValue
    }
}
