/// The selecting fields of a response (RFC 9110 §12.5.5, RFC 9111 §4.1).
///
/// The names are in lower case, sorted and unique; there are at most `namesMax`.
public struct Vary: Hashable, Sendable {
    /// The most names; more of them make so many variants that none is reused.
    public static let namesMax = 16
    public static let nameBytesMax = 255

    public let names: [String]

    public enum Reading: Hashable, Sendable {
        /// No Vary field, or an empty one.
        case absent
        case selecting(Vary)
        /// `*`, or a member that is not a field name: no later request can match.
        case everything
        case tooMany
    }

    private init(names: [String]) { self.names = names }

    /// For keys that are built without a response; returns `nil` if a name is not usable.
    public init?(_ names: [String]) {
        let names = Set(names.map { $0.lowercased() }).sorted()
        guard names.count <= Self.namesMax, names.allSatisfy(Self.isUsable) else { return nil }
        self.names = names
    }

    /// Reads the Vary lines of a response.
    public static func read(_ fields: FieldSection) -> Reading {
        var names: Set<String> = []
        var isEverything = false
        fields.forEachValue(of: "vary") { line in
            var members = ListScanner(line)
            while !isEverything, names.count <= namesMax, let member = members.next() {
                if FieldSection.isValidName(member), member.count <= nameBytesMax,
                    !member.equals(exactly: "*")
                {
                    names.insert(member.string.lowercased())
                } else {
                    isEverything = true
                }
            }
        }
        if isEverything { return .everything }
        if names.count > namesMax { return .tooMany }
        return names.isEmpty ? .absent : .selecting(Vary(names: names.sorted()))
    }

    private static func isUsable(_ name: String) -> Bool {
        FieldSection.isValidName(name) && name.utf8.count <= nameBytesMax && name != "*"
    }

    // MARK: - Bytes

    /// Appends the number of names as u8, then the length of each name as u8 and its bytes.
    public func encode(to bytes: inout [UInt8]) {
        bytes.append(UInt8(names.count))
        for name in names {
            bytes.append(UInt8(name.utf8.count))
            bytes.append(contentsOf: name.utf8)
        }
    }

    /// Returns `nil` unless `encode` could have written the bytes.
    ///
    /// Unsorted, repeated or upper-case names are refused, and so are bytes after the last name.
    public init?(decoding source: UnsafeRawBufferPointer) {
        let bytes = ByteRun(source)
        guard !bytes.isEmpty, Int(bytes[0]) <= Self.namesMax else { return nil }
        var names: [String] = []
        var offset = 1
        for _ in 0..<Int(bytes[0]) {
            guard offset < bytes.count else { return nil }
            let end = offset + 1 + Int(bytes[offset])
            guard end <= bytes.count else { return nil }
            let name = bytes[(offset + 1)..<end].string
            guard Self.isUsable(name), name == name.lowercased(), names.last ?? "" < name else {
                return nil
            }
            names.append(name)
            offset = end
        }
        guard offset == bytes.count else { return nil }
        self.names = names
    }
}
