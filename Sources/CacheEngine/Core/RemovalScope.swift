/// The entries that a removal concerns.
public enum RemovalScope: Sendable {
    /// Every entry.
    case everything
    /// The entries that carry the tag.
    case tag(String)
    /// The entries of one storage class.
    case storageClass(StorageClass)
    /// The entries stored in that second of Unix time, counted from 1970, or later: that second is
    /// included.
    ///
    /// The removal of the entries that were stored within the last hour:
    ///
    /// ```swift
    /// let now = Int64(Date().timeIntervalSince1970)
    /// try await cache.removeAll(in: .storedAfter(unixSeconds: now - 3_600))
    /// ```
    case storedAfter(unixSeconds: Int64)
    /// The entries stored before that second of Unix time, counted from 1970: that second is not
    /// included.
    ///
    /// The removal of the entries that were stored more than an hour ago:
    ///
    /// ```swift
    /// let now = Int64(Date().timeIntervalSince1970)
    /// try await cache.removeAll(in: .storedBefore(unixSeconds: now - 3_600))
    /// ```
    case storedBefore(unixSeconds: Int64)
}

extension RemovalScope {
    /// Whether the scope names that class or that time; the scope of a tag names neither.
    func covers(_ storageClass: StorageClass, createdSeconds: UInt32) -> Bool {
        switch self {
        case .everything: true
        case .tag: false
        case .storageClass(let named): storageClass == named
        case .storedAfter(let seconds):
            Int64(createdSeconds) >= min(seconds, Int64(EntryHead.secondsMax))
        case .storedBefore(let seconds): Int64(createdSeconds) < seconds
        }
    }
}

/// Tags are equal if their bytes are: two texts that Unicode calls equal are two tags.
extension RemovalScope: Hashable {
    private enum Bytes: Hashable {
        case everything
        case tag([UInt8])
        case storageClass(StorageClass)
        case storedAfter(Int64), storedBefore(Int64)
    }

    private var bytes: Bytes {
        switch self {
        case .everything: .everything
        case .tag(let tag): .tag(Array(tag.utf8))
        case .storageClass(let storageClass): .storageClass(storageClass)
        case .storedAfter(let seconds): .storedAfter(seconds)
        case .storedBefore(let seconds): .storedBefore(seconds)
        }
    }

    /// Whether both name the same entries.
    public static func == (first: Self, second: Self) -> Bool { first.bytes == second.bytes }

    /// Hashes the bytes that are compared.
    public func hash(into hasher: inout Hasher) { hasher.combine(bytes) }
}

/// The number of entries that a removal removed, as far as it is known without reading a disk.
///
/// A removal by tag or time counts no entry that is on disk alone. A removal of a storage class does
/// not count the entries of a segment that is being written.
public struct RemovalCount: Hashable, Sendable {
    /// The number of entries removed.
    public var entries: Int
    /// The number of bytes of those entries.
    public var bytes: Int

    /// A count of entries and bytes.
    public init(entries: Int = 0, bytes: Int = 0) {
        self.entries = entries
        self.bytes = bytes
    }

    /// The sum of two removals.
    public static func + (left: Self, right: Self) -> Self {
        Self(entries: left.entries + right.entries, bytes: left.bytes + right.bytes)
    }
}
