/// The result of a purge.
public struct PurgeReport: Sendable {
    /// The entries on this machine that were removed, as far as is known without reading a disk.
    ///
    /// A resource counts once, with all its variants, and so does one that a soft purge made stale. A
    /// soft purge of a tag or of everything counts nothing.
    public var entries = 0
    /// The receipt of the log, of several targets that of the last; `nil` if the cache belongs to no
    /// fleet.
    public var receipt: FleetReceipt?

    /// A report without entries and receipt.
    public init() {}
}
