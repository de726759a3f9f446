/// A place for entries behind the engine's memory: the engine's disk, or an application's store.
///
/// A test kit checks the contract of the methods for any store (`StoreConformance` in
/// `CacheTestSupport`). A store may lose entries, but it must not invent one or return a removed one.
public protocol CacheStore: Sendable {
    /// Returns the entry for `key`, or `nil` if there is none.
    func entry(for key: StoreKey) async throws -> StoredEntry?

    /// Stores `entry` in place of the previous one; a refusal also removes the previous one.
    func store(_ entry: StoredEntry) async throws -> StoreOutcome

    /// Removes the entry for `key`; returns `true` if there was one.
    func remove(_ key: StoreKey) async throws -> Bool

    /// Removes every entry in `scope`; the removal is durable when the method returns.
    ///
    /// An entry of the session class names its session. Entries of other sessions may remain,
    /// because they are not read again.
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount

    /// Returns how much is stored, in O(1).
    func usage() async -> StoreUsage

    /// Writes everything accepted so far.
    func flush() async throws
}
