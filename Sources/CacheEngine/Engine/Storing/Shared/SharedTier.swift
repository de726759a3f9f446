import HTTPCaching

/// The store that the machines of a fleet share, as this machine sees it.
///
/// It holds copies of entries that any machine may read. Each call has a limit of its own, and a
/// failure is a miss: a cache that cannot reach its shared store works without it.
package protocol SharedTier: Sendable {
    /// Looks up the record of `key`; without a usable record, asks for the key's lease.
    ///
    /// While another machine has the lease, this one waits for its record. `use` turns a record into
    /// a value, and returns `nil` for a record that does not serve the caller. `budget` is the time
    /// of the request, which may look several times; its times are those of `clock`.
    func look<Value: Sendable>(
        _ key: SharedKey,
        _ clock: any CacheClock,
        _ budget: inout SharedBudget,
        _ use: @Sendable (StoredEntry) -> Value?
    ) async -> SharedLook<Value>

    /// The time that a request may lose here, if it begins to look now.
    func budget(startedNanoseconds: UInt64) -> SharedBudget

    /// Copies an entry that was stored on this machine; the copy replaces an older one.
    ///
    /// Returns at once. The lease of the key ends with the copy. `isPermitted` is asked in the step
    /// that queues the copy: a removal that began before makes it false, and one that begins later
    /// ends the copy.
    func publish(_ copies: [SharedCopy], onlyIf isPermitted: () -> Bool)

    /// An entry is about to be removed on this machine: from now on it uses no older record of the
    /// entry's resource. `forget` follows.
    ///
    /// Otherwise a request between the removal and `forget` could read back what was removed.
    func hide(_ key: SharedKey)

    /// Removes the record of an entry that was removed on this machine, and keeps others from
    /// restoring it for some seconds.
    ///
    /// Returns at once; from then on this machine does not use the older record.
    func forget(_ key: SharedKey)

    /// Entries were removed on this machine alone: from now on it uses no older record.
    func forgetEverything()

    /// Ends a lease without a record, unless a record was published under it.
    func end(_ lease: SharedLease, _ ending: SharedLease.Ending)
}

/// The name of an entry in the shared store.
package struct SharedKey: Hashable, Sendable {
    /// The key of the entry.
    package let bytes: [UInt8]
    /// The key of its resource, which is another one if the entry is a variant.
    package let resource: [UInt8]

    package init(bytes: [UInt8], resource: [UInt8]) {
        self.bytes = bytes
        self.resource = resource
    }
}

/// The time that one request may lose to the shared store, in all its looks.
package struct SharedBudget: Hashable, Sendable {
    /// The moment, of the monotonic clock, at which the first look began.
    package let startedNanoseconds: UInt64
    private let spentNanosecondsMax: UInt64
    private var spentNanoseconds: UInt64 = 0

    /// Creates a budget; once commands have taken `spentNanosecondsMax`, no other one is begun.
    package init(startedNanoseconds: UInt64, spentNanosecondsMax: UInt64) {
        self.startedNanoseconds = startedNanoseconds
        self.spentNanosecondsMax = spentNanosecondsMax
    }

    /// Whether the request may send another command.
    package var isLeft: Bool { spentNanoseconds < spentNanosecondsMax }

    /// Counts the time of a command; the wait for another machine's response is not counted.
    package mutating func spend(_ nanoseconds: UInt64) { spentNanoseconds &+= nanoseconds }
}

/// The result of a look into the shared store.
package enum SharedLook<Value: Sendable>: Sendable {
    case found(Value)
    /// No other machine fetches the key while the caller does. `older` is a record that did not
    /// serve the caller.
    case lead(SharedLease, older: StoredEntry?)
    /// The caller fetches for itself.
    case alone(older: StoredEntry?)
}

/// The right to fetch a key for the whole fleet, for as long as the holder renews it.
///
/// It saves requests to the origin and promises nothing: a record that comes too late is refused.
package struct SharedLease: Hashable, Sendable {
    package let key: SharedKey
    /// Random bytes that name the holder.
    package let token: [UInt8]

    package init(key: SharedKey, token: [UInt8]) {
        self.key = key
        self.token = token
    }

    /// How a lease ended without a record.
    package enum Ending: Hashable, Sendable {
        /// The response tells nothing of the next one, as if the fetch failed, and another machine may
        /// try.
        case failed
        /// The response is for one client, so the other machines fetch for themselves at once.
        case unshareable
    }
}

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

/// Passes the changes of this machine on to the shared store of a fleet.
///
/// An entry that is stored here is copied if other machines may use it; otherwise, and if it is
/// removed here, its record is removed.
struct SharedOutlet: Sendable {
    let tier: any SharedTier

    /// The longest time that a record serves.
    private static let lifetimeSecondsMax = 24 * 60 * 60

    /// An entry was stored on this machine; `index` is that of its resource, if it is a variant.
    ///
    /// `isPermitted` says whether it may still be stored: it could have been removed meanwhile.
    func stored(
        _ entry: StoredEntry,
        index: StoredEntry?,
        since ticket: RemovalLedger.Ticket,
        nowSeconds: Int64,
        onlyIf isPermitted: () -> Bool
    ) {
        let key = RequestKey(entry.key)
        guard let response = StoredResponse(entry), response.parts == nil else { return }
        let lifetime = lifetimeSeconds(of: response.facts, nowSeconds)
        guard entry.storageClass != .session, !entry.isMemoryOnly, entry.detachedBody == nil,
            entry.sizeBytes <= SharedRecord.entryBytesMax, lifetime > 0,
            !response.facts.flags.contains(.noCache)
        else { return tier.forget(key.shared) }
        let copy = { (key: RequestKey, entry: StoredEntry) in
            SharedCopy(
                key: key.shared,
                entry: entry,
                position: ticket.fleetPosition,
                nowSeconds: nowSeconds,
                lifetimeSeconds: lifetime,
                mayReplace: ticket.mayReplaceShared
            )
        }
        // A machine that finds the index looks for the variant next, so the index comes second.
        let copies = [copy(key, entry)] + (index.map { [copy(RequestKey($0.key), $0)] } ?? [])
        tier.publish(copies, onlyIf: isPermitted)
    }

    /// An entry is about to be removed on this machine alone.
    func removes(_ key: RequestKey) {
        if !Mutant.hidesRecordsLate.isOn { tier.hide(key.shared) }
    }

    /// An entry was removed on this machine alone.
    func removed(_ key: RequestKey) { tier.forget(key.shared) }

    /// Entries are about to be removed on this machine, or were removed.
    func removesAll(in scope: RemovalScope) {
        switch scope {
        // The fleet's log orders these.
        case .everything, .tag: break
        case .storageClass, .storedAfter, .storedBefore: tier.forgetEverything()
        }
    }

    /// The rest of the lifetime, and the longest time for which the response may be served stale.
    private func lifetimeSeconds(of facts: StoredFacts, _ nowSeconds: Int64) -> Int {
        let window = max(facts.staleWhileRevalidateSeconds, facts.staleIfErrorSeconds)
        let lifetime = Int(window) - facts.stalenessSeconds(at: nowSeconds)
        return min(lifetime, Self.lifetimeSecondsMax)
    }
}

extension RequestKey {
    /// The name of the entry for other machines.
    var shared: SharedKey { SharedKey(bytes: bytes, resource: resource ?? bytes) }

    /// The key of the resource, if this is the key of a variant.
    var resource: [UInt8]? {
        bytes.withUnsafeBytes { ResourceTag.resource(in: $0).map { [UInt8]($0) } }
    }
}
