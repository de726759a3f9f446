/// The purges that the application asks for: applied here first, then handed to the fleet.
///
/// The order matters: the fleet's log returns each purge to its machine, which must not remove
/// entries that were stored since.
struct PurgeDesk {
    /// The targets of one purge: each is a task, and one exchange with the fleet's log has all of
    /// them.
    static let targetsMax = 1_024

    private let services: Services

    init(_ services: Services) { self.services = services }

    /// The result of purges on this machine and in the fleet.
    struct Outcome {
        var entries = 0
        /// `nil` if the cache belongs to no fleet.
        var sharing: Result<FleetReceipt, CacheError>?

        /// - Throws: `CacheError` if the fleet has not taken the purges.
        func report() throws -> PurgeReport {
            var report = PurgeReport()
            report.entries = entries
            report.receipt = try sharing?.get()
            return report
        }
    }

    /// Applies the purges here, and then hands them to the fleet together.
    ///
    /// A fleet that has not applied them in time is no error: the receipt tells.
    ///
    /// - Throws: The error of a purge that could not be applied here; the others get it first.
    func purge(
        _ targets: [PurgeTarget],
        isSoft: Bool,
        waitingFor wait: PurgeWait
    ) async throws -> Outcome {
        guard targets.count <= Self.targetsMax else {
            throw CacheError(
                .requestInvalid,
                detail: "One purge has \(targets.count) targets, more than \(Self.targetsMax); "
                    + "give them to several purges"
            )
        }
        // A request without a key is an error before anything is purged.
        let shared = try targets.map { SharedPurge(try scope(of: $0), isSoft: isSoft) }
        // Before anything is removed here: from now on no older copy of it is read from the fleet.
        services.relay?.announce(shared)
        let results = await apply(targets, isSoft: isSoft)
        var outcome = Outcome()
        outcome.entries = results.reduce(0) { $0 + ((try? $1.get()) ?? 0) }
        let failures = results.compactMap { result in
            if case .failure(let failure) = result { failure } else { nil }
        }
        outcome.sharing = await share(shared, areApplied: failures.isEmpty)
        if let failure = failures.first { throw failure }
        if wait == .fleet, case .success(var receipt) = outcome.sharing {
            receipt.reach = await services.relay?.reach(of: receipt)
            outcome.sharing = .success(receipt)
        }
        return outcome
    }

    /// Hands over a purge that `body` applies here.
    func sharing<Value>(
        _ scope: SharedPurge.Scope,
        isSoft: Bool = false,
        _ body: () async throws -> Value
    ) async throws -> Value {
        let purge = SharedPurge(try Self.checked(scope), isSoft: isSoft)
        services.relay?.announce([purge])
        let result: Result<Value, any Error>
        do { result = .success(try await body()) } catch { result = .failure(error) }
        let isApplied = if case .success = result { true } else { false }
        let sharing = await share([purge], areApplied: isApplied)
        let value = try result.get()
        _ = try sharing?.get()
        return value
    }

    /// The resource of a request, as other machines know it.
    func scope(of request: CacheRequest) throws -> SharedPurge.Scope {
        .key(try services.key(of: request).key.bytes)
    }

    private func share(
        _ purges: [SharedPurge],
        areApplied: Bool
    ) async -> Result<FleetReceipt, CacheError>? {
        guard let relay = services.relay, !purges.isEmpty else { return nil }
        do {
            return .success(try await relay.share(purges, areApplied: areApplied))
        } catch {
            let reason = (error as? CacheError)?.detail ?? "\(error)"
            return .failure(
                CacheError(
                    .purgeNotShared,
                    detail: "The purge was applied on this machine, but the fleet's log "
                        + "has not confirmed it; send it again: \(reason)"
                )
            )
        }
    }

    private func scope(of target: PurgeTarget) throws -> SharedPurge.Scope {
        switch target {
        case .request(let request): try scope(of: request)
        case .tag(let tag): try Self.checked(.tag(tag))
        case .everything: .everything
        }
    }

    /// Refuses a tag that no entry can carry.
    private static func checked(_ scope: SharedPurge.Scope) throws -> SharedPurge.Scope {
        guard case .tag(let tag) = scope, tag.utf8.count > TagList.tagBytesMax else { return scope }
        throw CacheError(
            .requestInvalid,
            detail: "The tag has \(tag.utf8.count) bytes, more than the \(TagList.tagBytesMax) "
                + "that an entry can carry; give a shorter one"
        )
    }

    /// Applies the purges one after the other, each as soon as the one before holds in this process,
    /// and tags beside each other, because they share a walk over the memory; the device confirms
    /// them together.
    ///
    /// So an entry that two of them cover is counted once, and a device that hangs keeps none from
    /// its effect.
    private func apply(
        _ targets: [PurgeTarget],
        isSoft: Bool
    ) async -> [Result<Int, any Error>] {
        typealias Answer = (place: Int, result: Result<Int, any Error>)
        return await withTaskGroup(of: Answer.self) { group in
            for (place, target) in targets.enumerated() {
                let isHeld = Race<Void>()
                group.addTask {
                    defer { isHeld.finish(.success(())) }
                    do {
                        let count = try await apply(target, isSoft: isSoft) {
                            if !Mutant.confirmsOneByOne.isOn { isHeld.finish(.success(())) }
                        }
                        return (place, .success(count))
                    } catch { return (place, .failure(error)) }
                }
                if case .tag = target, !isSoft, !Mutant.walksForEachTag.isOn { continue }
                try? await isHeld.resultDespiteCancellation()
            }
            var answers: [Answer] = []
            for await answer in group { answers.append(answer) }
            return answers.sorted { $0.place < $1.place }.map(\.result)
        }
    }

    /// Applies a purge; calls `whenApplied` as soon as it holds in this process.
    private func apply(
        _ target: PurgeTarget,
        isSoft: Bool,
        whenApplied: () -> Void
    ) async throws -> Int {
        let (tiers, removal) = (services.tiers, ManualRemoval(services: services))
        switch target {
        case .request(let request):
            let isFound =
                isSoft
                ? try await removal.markStale(request, whenMarked: whenApplied)
                : try await removal.remove(request, whenForgotten: whenApplied)
            return isFound ? 1 : 0
        case .tag(let tag) where isSoft: try await tiers.markStale(tag, whenMarked: whenApplied)
        case .everything where isSoft: try await tiers.markEverythingStale(whenMarked: whenApplied)
        case .tag(let tag):
            return try await removal.removeAll(in: .tag(tag), whenForgotten: whenApplied).entries
        case .everything:
            return try await removal.removeAll(in: .everything, whenForgotten: whenApplied).entries
        }
        return 0
    }
}

/// Applies the purges of other machines to this one.
///
/// The relay's task holds the inbox. The inbox must not keep an unused cache alive.
final class PurgeInbox: PurgeReceiver {
    private weak let services: Services?

    init(_ services: Services) { self.services = services }

    var mayHoldOlderEntries: Bool { services?.tiers.backing.mayHoldOlderEntries ?? false }

    func apply(_ purge: SharedPurge, whenApplied: () -> Void) async throws {
        guard let services else { return }
        let tiers = services.tiers
        switch purge.scope {
        case .key(let bytes):
            let hash = bytes.withUnsafeBytes { tiers.hasher.hash($0) }
            let key = RequestKey(bytes: bytes, hash: hash)
            if purge.isSoft {
                try await StaleMarking(services).mark(key, whenMarked: whenApplied)
            } else {
                _ = try await tiers.removeDurably(key, whenForgotten: whenApplied)
            }
        // No entry can carry it.
        case .tag(let tag) where tag.utf8.count > TagList.tagBytesMax: return
        case .tag(let tag) where purge.isSoft:
            try await tiers.markStale(tag, whenMarked: whenApplied)
        case .tag(let tag): _ = try await tiers.removeAll(in: .tag(tag), whenForgotten: whenApplied)
        case .everything where purge.isSoft:
            try await tiers.markEverythingStale(whenMarked: whenApplied)
        case .everything:
            _ = try await tiers.removeAll(in: .everything, whenForgotten: whenApplied)
        }
    }

    func note(position: UInt64) { services?.tiers.ledger.note(fleetPosition: position) }

    func markEverythingStale(whenApplied: () -> Void) async throws {
        try await services?.tiers.markEverythingStale(whenMarked: whenApplied)
    }

    func bookmark() async -> [UInt8]? { await services?.tiers.backing.disk?.bookmark() }

    func keep(bookmark: [UInt8]) async throws {
        try await services?.tiers.backing.disk?.keep(bookmark: bookmark)
    }

    func report(_ event: CacheEvent) { services?.recorder.report(event) }
}
