/// The tag by which a soft purge of a resource finds the variants of it.
///
/// No entry carries it: it follows from a variant's key, which holds the key of the resource. No
/// field of a response can name it, because it begins with a zero.
enum ResourceTag {
    /// The first byte of a variant's key (`RequestKey.Kind`).
    private static let variantKind: UInt8 = 3
    /// The bytes of a variant's key before those of the resource (`RequestKey.variant`).
    private static let variantHeadBytes = 13

    static func name(of resource: KeyHash) -> String {
        "\u{0}" + String(resource.identity, radix: 36)
    }

    /// The key of the resource within `key`; `nil` if that is not the key of a variant.
    static func resource(in key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? {
        guard key.count > variantHeadBytes, key[0] == variantKind else { return nil }
        let count = Int(key.littleEndian(at: 9, as: UInt32.self))
        guard key.count - variantHeadBytes >= count else { return nil }
        return .init(rebasing: key[variantHeadBytes..<variantHeadBytes + count])
    }
}

extension Entry {
    /// Whether a mark by tag may cover it: it has tags, or it is a variant, whose resource is one.
    var isReachedByTags: Bool {
        withTags { !$0.isEmpty } || withKey { ResourceTag.resource(in: $0) != nil }
    }
}
