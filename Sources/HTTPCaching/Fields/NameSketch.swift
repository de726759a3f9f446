/// The lengths and first letters of the names in a field section, which exclude most names without
/// a search.
public struct NameSketch: Hashable, Sendable {
    /// One bit for each name; several names have the same one.
    private var bits: UInt64 = 0

    /// Whether a field of that name may be there.
    public func mayInclude(_ name: String) -> Bool {
        name.withByteRun { bits & Self.bit(of: $0) != 0 }
    }

    mutating func insert(_ name: ByteRun) { bits |= Self.bit(of: name) }

    /// Of 40 usual names, none shares its bit with a name of tags or of targeted directives.
    private static func bit(of name: ByteRun) -> UInt64 {
        guard !name.isEmpty else { return 0 }
        // The lower five bits of a letter do not tell its case.
        return 1 << UInt64((4 * name.count + Int(name[0] & 0x1F)) & 63)
    }
}
