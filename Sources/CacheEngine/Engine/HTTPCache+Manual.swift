/// Looking up, storing and removing by hand.
extension HTTPCache {
    private var manual: ManualStore { ManualStore(services: services) }
    private var removal: ManualRemoval { ManualRemoval(services: services) }
    private var desk: PurgeDesk { PurgeDesk(services) }

    /// Returns the stored response to the request, of any age, without asking the origin or
    /// changing the store; `nil` for a request that no stored response answers, such as a POST
    /// without a key of its own.
    public func storedResponse(for request: CacheRequest) async throws -> CacheResponse? {
        try await manual.storedResponse(for: request)
    }

    /// Stores a response under the request's key, in the variant that the request selects.
    ///
    /// A response that HTTP would not store is stored too: this is the caller's own decision. Size
    /// limits hold, a 206 must name the part that it carries, and `Vary` may name 16 fields at most
    /// and not `*`, because no request selects such a response. The body is read to its end, and a
    /// `Content-Length` that differs from its length is replaced by that. The entry gets the tags of
    /// `options` and those that the response's own fields name; a response whose fields name more
    /// than `CachingRules.maximumTags` is refused.
    ///
    /// - Throws: The error of the body, or `CacheError`; its code is `.requestInvalid` if no later
    ///   request could have the response: the method is not GET (nor POST or QUERY with
    ///   `RequestOptions.key`), or the status answers one request only (1xx, 304, 407, 412, 416, 425,
    ///   428, 429, 431 and 511).
    @discardableResult
    public func store(
        _ response: CacheResponse,
        for request: CacheRequest,
        options: ManualStoreOptions = ManualStoreOptions()
    ) async throws -> StoreOutcome {
        try await manual.store(response, for: request, options)
    }

    /// Stores the response of a fetch that has left this to its caller, as the fetch itself would
    /// have stored it: by the rules of HTTP, in the storage class of the request's policy, and only
    /// if no removal since the beginning of the fetch covers it.
    ///
    /// The caller may have changed the response; of `options`, the storage class is not used.
    package func store(
        _ response: CacheResponse,
        for request: CacheRequest,
        options: ManualStoreOptions,
        as pending: PendingStore
    ) async throws -> StoreOutcome {
        try await manual.store(response, for: request, options, as: pending)
    }

    // MARK: Removing

    /// Removes all stored variants of the request's resource.
    ///
    /// The response of a fetch under way is delivered to the requests that wait for it, and is not
    /// stored.
    ///
    /// - Returns: Whether there was an entry in memory or on disk; an entry that only a custom store
    ///   holds is removed too, and not reported.
    @discardableResult
    public func remove(_ request: CacheRequest) async throws -> Bool {
        try await desk.sharing(desk.scope(of: request)) { try await removal.remove(request) }
    }

    /// Removes the one variant that the request selects.
    ///
    /// The response of a fetch under way, of any variant, is delivered to the requests that wait
    /// for it, and is not stored.
    ///
    /// The other machines of a fleet remove all variants.
    ///
    /// - Returns: Whether there was an entry.
    @discardableResult
    public func removeVariant(_ request: CacheRequest) async throws -> Bool {
        try await desk.sharing(desk.scope(of: request)) { try await removal.removeVariant(request) }
    }

    /// Ends the stored response that a fetched one replaces, because no caller stores the fetched one.
    package func endReplaced(by pending: PendingStore, for request: CacheRequest) async {
        await manual.endReplaced(by: pending, for: request)
    }

    /// Removes all entries that carry the tag; `purge(_:isSoft:waitingFor:)` does the same, and
    /// returns the receipt of a fleet.
    ///
    /// On disk the removal survives the end of the process once this method has returned, and a
    /// power cut if `BackingStore.durability` is `.onRemoval`.
    ///
    /// - Throws: `CacheError`; its code is `.requestInvalid` if no entry can carry the tag, which
    ///   then has more than 65,533 bytes.
    @discardableResult
    public func purge(tag: String) async throws -> RemovalCount {
        try await removeAll(in: .tag(tag))
    }

    /// Removes or, if `isSoft`, makes stale what `target` names, here and on all machines of the
    /// fleet.
    ///
    /// The report has the receipt of the fleet's log. A soft purge of everything lets no entry be
    /// used before the origin has confirmed it. A soft purge of a request concerns all variants of
    /// its resource; in a custom store, which would not keep the mark, they are removed. A response on
    /// disk that is not read within a quarter of a second is removed, too.
    ///
    /// With `.fleet` this method returns once the other machines have applied the purge too, or
    /// after five seconds; `FleetReceipt.reach` tells how many of them have.
    ///
    /// - Throws: `CacheError`; its code is `.purgeNotShared` if the purge was applied here and the
    ///   log has not confirmed it.
    @discardableResult
    public func purge(
        _ target: PurgeTarget,
        isSoft: Bool = false,
        waitingFor wait: PurgeWait = .log
    ) async throws -> PurgeReport {
        try await purge([target], isSoft: isSoft, waitingFor: wait)
    }

    /// Removes or, if `isSoft`, makes stale what the targets name, here and on all machines of the
    /// fleet.
    ///
    /// One call costs less than a call for each target: the removals of tags share walks over the
    /// memory, and all targets travel to the log together and share one receipt. Otherwise each is
    /// purged as if it came alone.
    ///
    /// ```swift
    /// let report = try await cache.purge([.tag("user:42"), .tag("prices"), .request(request)])
    /// print(report.entries, "entries were removed")
    /// ```
    ///
    /// The targets are checked before anything is purged. After that they do not depend on each
    /// other: if the storage fails at one, all others are applied, all travel to the log, and then
    /// the first failure is thrown. An entry that two of them name counts once. An empty array
    /// purges nothing, and its report has no receipt.
    ///
    /// - Throws: `CacheError`; its code is `.requestInvalid`, and nothing was purged, if there are
    ///   more than 1,024 targets, if a URL is invalid, or if no entry can carry a tag. It is
    ///   `.purgeNotShared` if all targets were applied here and the log has not confirmed them: it
    ///   may have some of them, and the same call can be repeated.
    @discardableResult
    public func purge(
        _ targets: [PurgeTarget],
        isSoft: Bool = false,
        waitingFor wait: PurgeWait = .log
    ) async throws -> PurgeReport {
        try await desk.purge(targets, isSoft: isSoft, waitingFor: wait).report()
    }

    /// Purges as `purge(_:isSoft:waitingFor:)` does, and returns the failure of the log beside the
    /// number of entries.
    package func attemptPurge(
        _ targets: [PurgeTarget],
        isSoft: Bool,
        waitingFor wait: PurgeWait = .log
    ) async throws -> (entries: Int, sharing: Result<FleetReceipt, CacheError>?) {
        let outcome = try await desk.purge(targets, isSoft: isSoft, waitingFor: wait)
        return (outcome.entries, outcome.sharing)
    }

    /// Removes all entries in `scope`.
    ///
    /// In a fleet, the removal of a tag or of everything reaches all machines; that of a storage
    /// class or of a time concerns this machine only.
    ///
    /// On disk the removal survives the end of the process once this method has returned, and a
    /// power cut if `BackingStore.durability` is `.onRemoval`.
    @discardableResult
    public func removeAll(in scope: RemovalScope = .everything) async throws -> RemovalCount {
        switch scope {
        case .everything:
            try await desk.sharing(.everything) { try await removal.removeAll(in: scope) }
        case .tag(let tag):
            try await desk.sharing(.tag(tag)) { try await removal.removeAll(in: scope) }
        case .storageClass, .storedAfter, .storedBefore: try await removal.removeAll(in: scope)
        }
    }

    /// Ends the session: removes all entries of the session class.
    @discardableResult
    public func endSession() async throws -> RemovalCount {
        try await removeAll(in: .storageClass(.session))
    }

    /// Makes all stored variants of the request's resource stale, as if their lifetimes had ended.
    ///
    /// The next use of each asks the origin first. If the response or the policy lets it be served
    /// stale, as `stale-while-revalidate` does, that use and those until the refresh has ended get
    /// the stale response.
    ///
    /// On the other machines of a fleet all variants become stale, too. Variants in a custom store,
    /// which would not keep the mark, are removed, and so is a response on disk that is not read
    /// within a quarter of a second. `purge(_:isSoft:waitingFor:)` does the same, and returns the
    /// receipt of a fleet.
    ///
    /// - Returns: Whether there was an entry.
    @discardableResult
    public func markStale(_ request: CacheRequest) async throws -> Bool {
        try await desk.sharing(desk.scope(of: request), isSoft: true) {
            try await removal.markStale(request)
        }
    }

    /// Makes the one variant stale that the request selects, as if its lifetime had ended.
    ///
    /// The other machines of a fleet make all variants stale, and so does this one if the machines
    /// share entries. All variants are removed if the disk does not return one that the request may
    /// select within a quarter of a second, or if a look-up in a custom store fails.
    ///
    /// - Returns: Whether there was an entry.
    @discardableResult
    public func markVariantStale(_ request: CacheRequest) async throws -> Bool {
        try await desk.sharing(desk.scope(of: request), isSoft: true) {
            try await removal.markVariantStale(request)
        }
    }

    /// Makes all entries stale that carry the tag and are stored now.
    ///
    /// An entry stored later is not affected. On disk the mark survives the end of the process once
    /// this method has returned, and a power cut if `BackingStore.durability` is `.onRemoval`. In
    /// front of a custom store only this process remembers the mark.
    ///
    /// - Throws: `CacheError`; its code is `.requestInvalid` if no entry can carry the tag, which
    ///   then has more than 65,533 bytes.
    public func markStale(tagged tag: String) async throws {
        try await desk.sharing(.tag(tag), isSoft: true) {
            try await services.tiers.markStale(tag)
        }
    }

    // MARK: Room

    /// Changes the capacity of the memory, and returns once it is reached.
    public func setMemoryCapacity(_ capacity: ByteCount) async {
        if configuration.bodyLimits == nil {
            var memory = configuration.memory
            memory.capacity = capacity
            services.bodies.setTotal(memory.bodyLimits.totalBytes)
        }
        await services.tiers.memory.setCapacity(capacity.bytes)
    }

    /// Changes the capacity of the disk, and with it the largest entry
    /// (`BackingStore.maximumEntryShare`), and returns once it is reached.
    ///
    /// - Throws: `CacheError` if files cannot be unlinked. What is stored from then on keeps within the
    ///   capacity all the same.
    public func setDiskCapacity(_ capacity: ByteCount) async throws {
        try await services.tiers.backing.changeCapacity(toBytes: capacity.bytes)
    }

    /// The present capacity of the memory.
    package var memoryCapacityBytes: Int { services.tiers.memory.usage().capacityBytes }

    /// The present capacity of the disk; 0 without one.
    package var diskCapacityBytes: Int { services.tiers.backing.disk?.capacityBytes ?? 0 }

    /// Evicts entries from memory, for use when the system runs short of it; other tiers keep
    /// theirs.
    ///
    /// `share` is the part that may stay, from 0 to 1.
    public func relieveMemoryPressure(keeping share: Double = 0) async {
        await services.tiers.memory.shrink(toShare: share)
    }

    /// Writes all entries stored so far to the tier behind the memory.
    ///
    /// Throws if the disk has lost an entry. A loss is reported once, to every call that was made
    /// before the report.
    public func flush() async throws { try await services.tiers.backing.flush() }
}
