/// The scopes of one walk, ordered so that an entry is asked for its own tags, and not for each tag
/// that is removed.
struct SweepScopes {
    private struct Tag {
        let bytes: [UInt8]
        /// The first scope with that tag.
        let number: Int
    }

    private let scopes: [RemovalScope]
    private let hasher = KeyHasher.random()
    /// Under the hashes of their bytes.
    private var tags: [UInt64: [Tag]] = [:]
    /// The first of equal scopes that are no tags.
    private var others: [Int] = []
    /// How often an entry or one of its tags was compared with a scope.
    private(set) var comparisonCount = 0

    init(_ scopes: [RemovalScope]) {
        self.scopes = scopes
        var known: Set<RemovalScope> = []
        for (number, scope) in scopes.enumerated() where known.insert(scope).inserted {
            guard case .tag(let tag) = scope else {
                others.append(number)
                continue
            }
            let bytes = Array(tag.utf8)
            tags[bytes.withUnsafeBytes(hash), default: []].append(Tag(bytes: bytes, number: number))
        }
    }

    /// The number of the first scope that the entry is in.
    mutating func first(with entry: Entry) -> Int? {
        // Without a hash for each tag of the entry.
        if scopes.count == 1 {
            comparisonCount += 1
            return entry.isCovered(by: scopes[0]) ? 0 : nil
        }
        var first: Int?
        for number in others where first == nil {
            comparisonCount += 1
            if entry.isCovered(by: scopes[number]) { first = number }
        }
        guard !tags.isEmpty else { return first }
        entry.withTags { bytes in
            TagList.forEach(in: bytes) { bytes in
                for tag in tags[hash(bytes)] ?? [] where tag.number < first ?? .max {
                    comparisonCount += 1
                    if tag.bytes.withUnsafeBytes(bytes.hasSameBytes) { first = tag.number }
                }
            }
        }
        return first
    }

    private func hash(_ tag: UnsafeRawBufferPointer) -> UInt64 { hasher.hash(tag).identity }
}
