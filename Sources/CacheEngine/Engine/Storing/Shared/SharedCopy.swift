/// An entry on its way into the shared store.
package struct SharedCopy: Sendable {
    package let key: SharedKey
    package let entry: StoredEntry
    /// The place in the fleet's order of purges before the entry was fetched.
    package let position: UInt64
    /// The machine's time when the entry was stored.
    package let nowSeconds: Int64
    /// The time for which the record may serve.
    package let lifetimeSeconds: Int
    /// Whether the record may replace another machine's, although this machine had no lease.
    package let mayReplace: Bool
}
