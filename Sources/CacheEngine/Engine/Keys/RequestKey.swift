/// The key of a request: its resource, without the fields that select a variant.
///
///     kind u8 · partition length u32 · partition · text
///
/// The text is the normal form of the URL, or the caller's own key. The length before the partition
/// keeps keys apart whose parts would join to the same bytes.
struct RequestKey: Hashable, Sendable {
    let bytes: [UInt8]
    let hash: KeyHash

    /// The kind of a key's text.
    enum Kind: UInt8 {
        case url = 1
        case named = 2
        case variant = 3
    }

    var storeKey: StoreKey { StoreKey(bytes: bytes, hash: hash) }

    /// The key of one variant of this resource; it stays in the resource's shard.
    func variant(_ detail: [UInt8], nonce: UInt64, hasher: KeyHasher) -> RequestKey {
        var key: [UInt8] = [Kind.variant.rawValue]
        key.reserveCapacity(bytes.count + detail.count + 13)
        key.append(littleEndian: nonce)
        key.append(littleEndian: UInt32(bytes.count))
        key.append(contentsOf: bytes)
        key.append(contentsOf: detail)
        let made = RequestKey(
            bytes: key,
            hash: key.withUnsafeBytes { hasher.hash($0, within: hash) }
        )
        assert(made.resource == bytes, "reads as written")
        assert(made.hash.placement == hash.placement, "a variant has the shard of its resource")
        return made
    }
}

extension RequestKey {
    /// The key of an entry.
    init(_ key: StoreKey) { self.init(bytes: key.bytes, hash: key.hash) }
}

/// Writes keys.
enum KeyWriter {
    private static let headBytes = 5

    /// Lends the key for `url` (or for `name`, if given) to `body`; returns `nil` if `url` is not
    /// absolute.
    ///
    /// Keys of the usual length are on the stack, so that a hit allocates nothing for its key.
    static func withKey<Result>(
        url: String,
        name: String?,
        partition: String,
        _ body: (UnsafeRawBufferPointer, TargetURL.Scheme) throws -> Result
    ) rethrows -> Result? {
        let key = try url.utf8.withContiguousStorageIfAvailable { url in
            try withKey(UnsafeRawBufferPointer(url), name: name, partition: partition, body)
        }
        if let key { return key }
        // The string is bridged from another language.
        var url = url
        url.makeContiguousUTF8()
        return try withKey(url: url, name: name, partition: partition, body)
    }

    /// The same for a request whose key is its URL; inlined into its caller, so that a hit retains
    /// nothing for the closure.
    @inline(__always)
    static func withKey<Result>(
        url: String,
        _ body: (UnsafeRawBufferPointer, TargetURL.Scheme) throws -> Result
    ) rethrows -> Result? {
        let key = try url.utf8.withContiguousStorageIfAvailable { url -> Result? in
            let count = headBytes + TargetURL.writtenBytesMax(url.count)
            return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { target in
                target[0] = RequestKey.Kind.url.rawValue
                target.setLittleEndian(UInt32(0), at: 1)
                let url = UnsafeRawBufferPointer(url)
                guard let written = TargetURL(url, writingTo: target, at: headBytes) else {
                    return nil
                }
                assert(written.end <= target.count, "the key has room")
                return try body(.init(rebasing: target[0..<written.end]), written.scheme)
            }
        }
        if let key { return key }
        return try withKey(url: url, name: nil, partition: "", body)
    }

    private static func withKey<Result>(
        _ url: UnsafeRawBufferPointer,
        name: String?,
        partition: String,
        _ body: (UnsafeRawBufferPointer, TargetURL.Scheme) throws -> Result
    ) rethrows -> Result? {
        let count =
            headBytes + partition.utf8.count + (name?.utf8.count ?? 0)
            + TargetURL.writtenBytesMax(url.count)
        return try withUnsafeTemporaryAllocation(byteCount: count, alignment: 8) { target in
            guard let written = write(url: url, name: name, partition: partition, into: target)
            else { return nil }
            assert(written.end <= target.count, "the key has room")
            let key = UnsafeRawBufferPointer(rebasing: target[0..<written.end])
            return try body(key, written.scheme)
        }
    }

    private static func write(
        url: UnsafeRawBufferPointer,
        name: String?,
        partition: String,
        into target: UnsafeMutableRawBufferPointer
    ) -> (end: Int, scheme: TargetURL.Scheme)? {
        var end = headBytes
        target[0] = (name == nil ? RequestKey.Kind.url : .named).rawValue
        target.setLittleEndian(UInt32(partition.utf8.count), at: 1)
        if !partition.isEmpty { end = append(partition, to: target, at: end) }
        guard let written = TargetURL(url, writingTo: target, at: end) else { return nil }
        guard let name else { return (written.end, written.scheme) }
        return (append(name, to: target, at: end), written.scheme)
    }

    private static func append(
        _ text: String,
        to target: UnsafeMutableRawBufferPointer,
        at offset: Int
    ) -> Int {
        var text = text
        return text.withUTF8 { bytes in
            target.copy(UnsafeRawBufferPointer(bytes), at: offset)
            return offset + bytes.count
        }
    }
}
