/// The removals and soft purges that the application asks for, on this machine.
struct ManualRemoval {
    let services: Services

    private var tiers: TieredStore { services.tiers }

    /// Removes all stored variants of the request's resource.
    ///
    /// - Returns: Whether there was an entry in memory or on disk.
    func remove(
        _ request: CacheRequest,
        whenForgotten: () -> Void = {}
    ) async throws -> Bool {
        let key = try services.key(of: request).key
        let isRemoved = try await tiers.removeDurably(key, whenForgotten: whenForgotten)
        services.recorder.counters.add(.removals)
        return isRemoved
    }

    /// Removes the one variant that the request selects.
    ///
    /// - Returns: Whether there was an entry.
    func removeVariant(_ request: CacheRequest) async throws -> Bool {
        let key = try services.key(of: request).key
        let fields = request.fields.section
        // The response of a fetch may vary in a way that is not known yet.
        tiers.outdateFetches(of: key)
        let lookup = Lookup(services)
        let isStored = await lookup.result(for: key, fields).stored != nil
        // An older set of selecting fields may lead to another response to the same request.
        for candidate in await lookup.candidates(for: key, fields) {
            _ = try await tiers.removeDurably(candidate)
        }
        services.recorder.counters.add(.removals)
        return isStored
    }

    func removeAll(
        in scope: RemovalScope,
        whenForgotten: () -> Void = {}
    ) async throws -> RemovalCount {
        let count = try await tiers.removeAll(in: scope, whenForgotten: whenForgotten)
        services.recorder.counters.add(.removals, count.entries)
        return count
    }

    /// Makes all stored variants of the request's resource stale.
    ///
    /// - Returns: Whether there was an entry.
    func markStale(
        _ request: CacheRequest,
        whenMarked: () -> Void = {}
    ) async throws -> Bool {
        let key = try services.key(of: request).key
        let isFound = try await StaleMarking(services).mark(key, whenMarked: whenMarked)
        // A closed tier finds nothing that it holds.
        guard isFound || services.supervisor.isOpen else { throw CacheError.cacheShutDown }
        return isFound
    }

    /// Makes the one variant stale that the request selects.
    ///
    /// - Returns: Whether there was an entry.
    func markVariantStale(_ request: CacheRequest) async throws -> Bool {
        let key = try services.key(of: request).key
        return try await StaleMarking(services).mark(key, request.fields.section)
    }
}
