public import CacheEngine

/// A store that fails in every way: it throws, hangs, is slow and returns false results.
///
/// It wraps any store and treats each call as its plan says. Times are those of the given clock; a
/// call that hangs waits for `release()` or for its cancellation.
///
/// ```swift
/// let store = NemesisStore(InMemoryStore(), clock: clock)
/// ```
///
/// The plan can change while the store is in use:
///
/// ```swift
/// store.follow(.scripted { $0.method == .remove ? .throwsBefore : .none })
/// ```
public final class NemesisStore: CacheStore {
    private let inner: any CacheStore
    private let nemesis: Nemesis

    /// Creates a nemesis of `inner`.
    public init(
        _ inner: any CacheStore,
        clock: any CacheClock = SystemClock(),
        plan: NemesisPlan = .harmless
    ) {
        self.inner = inner
        nemesis = Nemesis(plan, clock)
    }

    /// Follows another plan from now on; calls that hang continue to hang.
    public func follow(_ plan: NemesisPlan) { nemesis.follow(plan) }

    /// Releases every call that hangs.
    public func release() { nemesis.release() }

    /// The number of calls that hang.
    public var hungCount: Int { nemesis.hungCount }

    /// The calls so far, in order of arrival.
    public var calls: [NemesisCall] { nemesis.calls }

    /// Returns the entry, `nil` or a false result.
    public func entry(for key: StoreKey) async throws -> StoredEntry? {
        try await nemesis.perform(
            .entry,
            Self.text(key),
            { try await inner.entry(for: key) },
            lying: { lie, found in
                switch lie {
                case .mixesUp: found.map(Self.anotherKeys)
                case .damages: found.flatMap(Self.damaged)
                case .miscounts: found
                }
            }
        )
    }

    /// Stores the entry, or fails to.
    public func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        try await nemesis.perform(
            .store,
            Self.text(entry.key),
            { try await inner.store(entry) },
            lying: { _, outcome in outcome }
        )
    }

    /// Removes the entry, or fails to.
    public func remove(_ key: StoreKey) async throws -> Bool {
        try await nemesis.perform(
            .remove,
            Self.text(key),
            { try await inner.remove(key) },
            lying: { lie, isRemoved in lie == .miscounts ? !isRemoved : isRemoved }
        )
    }

    /// Removes the entries, or fails to.
    public func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        try await nemesis.perform(
            .removeAll,
            String(describing: scope),
            { try await inner.removeAll(in: scope) },
            lying: { lie, count in
                lie == .miscounts ? RemovalCount(entries: .max, bytes: .max) : count
            }
        )
    }

    /// Returns the usage, or a false one; if the plan says to throw, the usage is empty.
    public func usage() async -> StoreUsage {
        let usage = try? await nemesis.perform(
            .usage,
            "",
            { await inner.usage() },
            lying: { lie, usage in
                lie == .miscounts ? StoreUsage(entries: -1, bytes: .min, capacityBytes: 0) : usage
            }
        )
        return usage ?? StoreUsage()
    }

    /// Flushes the store, or fails to.
    public func flush() async throws {
        try await nemesis.perform(.flush, "", { try await inner.flush() }, lying: { _, _ in })
    }

    private static func text(_ key: StoreKey) -> String {
        String(decoding: key.bytes, as: UTF8.self)
    }

    /// Returns the entry with a key that was not requested.
    private static func anotherKeys(_ entry: StoredEntry) -> StoredEntry {
        let bytes = [UInt8]("http://nemesis.invalid/\(entry.createdSeconds)".utf8)
        let head = entry.entry.head
        let body = entry.entry.body
        var other = EntryHead(
            hash: head.hash,
            createdSeconds: head.createdSeconds,
            keyCount: bytes.count,
            tagsCount: head.tagsCount,
            metadataCount: head.metadataCount,
            bodyCount: body.count
        )
        other.flags = head.flags
        return bytes.withUnsafeBytes { key in
            entry.entry.withTags { tags in
                entry.entry.withMetadata { metadata in
                    StoredEntry(
                        Entry(head: other, key: key, tags: tags, metadata: metadata) { target in
                            body.withUnsafeBytes { target.copyMemory(from: $0) }
                        }
                    )
                }
            }
        }
    }

    /// Returns the entry after a change of one bit in its bytes, or `nil` if it no longer parses.
    private static func damaged(_ entry: StoredEntry) -> StoredEntry? {
        guard var bytes = entry.serialized, !bytes.isEmpty else { return nil }
        let place = (bytes.count * 2 / 3 + Int(entry.createdSeconds)) % bytes.count
        bytes[place] ^= 1 << UInt8(place % 8)
        return StoredEntry(serialized: bytes)
    }
}
