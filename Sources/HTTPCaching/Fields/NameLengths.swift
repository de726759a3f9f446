/// The lengths of the names in a field section, which exclude most names without a search.
public struct NameLengths: Hashable, Sendable {
    /// The bit of each length; the last one stands for all that are longer too.
    private var bits: UInt64 = 0

    /// Whether a field of that name may be there.
    public func mayInclude(_ name: String) -> Bool { bits & Self.bit(name.utf8.count) != 0 }

    mutating func insert(_ count: Int) { bits |= Self.bit(count) }

    private static func bit(_ count: Int) -> UInt64 { 1 << UInt64(min(count, 63)) }
}
