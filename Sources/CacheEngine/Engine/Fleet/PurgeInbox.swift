/// Applies the purges of other machines to this one.
///
/// The relay's task holds the inbox. The inbox must not keep an unused cache alive.
final class PurgeInbox: PurgeReceiver {
    private weak let services: Services?

    init(_ services: Services) { self.services = services }

    var mayHoldOlderEntries: Bool { services?.tiers.backing.mayHoldOlderEntries ?? false }

    func apply(_ purge: SharedPurge) async throws {
        guard let services else { return }
        let tiers = services.tiers
        switch purge.scope {
        case .key(let bytes):
            let hash = bytes.withUnsafeBytes { tiers.hasher.hash($0) }
            let key = RequestKey(bytes: bytes, hash: hash)
            if purge.isSoft {
                try await StaleMarking(services).mark(key)
            } else {
                _ = try await tiers.removeDurably(key)
            }
        case .tag(let tag) where purge.isSoft: try await tiers.markStale(tag)
        case .tag(let tag): _ = try await tiers.removeAll(in: .tag(tag))
        case .everything where purge.isSoft: try await tiers.markEverythingStale()
        case .everything: _ = try await tiers.removeAll(in: .everything)
        }
    }

    func note(position: UInt64) { services?.tiers.ledger.note(fleetPosition: position) }

    func markEverythingStale() async throws { try await services?.tiers.markEverythingStale() }

    func note() async -> [UInt8]? { await services?.tiers.backing.disk?.note() }

    func keep(note: [UInt8]) async throws {
        try await services?.tiers.backing.disk?.keep(note: note)
    }

    func report(_ event: CacheEvent) { services?.recorder.note(event) }
}
