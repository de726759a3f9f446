import CacheEngine

/// A slow and simple model of a store for random runs: the entry that each key may hold.
struct StoreModel {
    private var random: SeededRandom
    private var latest: [String: SampleEntry] = [:]

    init(seed: UInt64) { random = SeededRandom(seed: seed) }

    /// Performs random stores, removals and look-ups.
    ///
    /// - Returns: A description of the first illegal result, or an empty array.
    mutating func run(steps: Int, on store: any CacheStore) async throws -> [String] {
        for step in 0..<steps {
            let name = "key \(UInt8.random(in: 0..<12, using: &random))"
            switch UInt8.random(in: 0..<20, using: &random) {
            case 0..<8: try await put(name, step, store)
            case 8..<10:
                latest[name] = nil
                _ = try await store.remove(SampleEntry(key: name, body: []).key)
            case 10: try await removeAll(store)
            case 11: try await store.flush()
            default:
                if let fault = try await look(name, store) { return ["step \(step): \(fault)"] }
            }
        }
        return []
    }

    private mutating func put(_ name: String, _ step: Int, _ store: any CacheStore) async throws {
        let size = Int.random(in: 0..<3_000, using: &random)
        let sample = SampleEntry(
            key: name,
            body: .init(repeating: UInt8(truncatingIfNeeded: step), count: size),
            tags: Bool.random(using: &random) ? ["tag \(step % 3)"] : [],
            storageClass: StorageClass.allCases.randomElement(using: &random) ?? .permanent,
            createdSeconds: UInt32(1_000 + step)
        )
        latest[name] = sample
        if try await store.store(sample.entry) != .stored { latest[name] = nil }
    }

    private mutating func removeAll(_ store: any CacheStore) async throws {
        let scopes: [RemovalScope] = [
            .tag("tag 0"), .tag("tag 1"), .storageClass(.session),
            .storedBefore(unixSeconds: 1_050), .storedAfter(unixSeconds: 1_100), .everything,
        ]
        let scope = scopes.randomElement(using: &random) ?? .everything
        latest = latest.filter { !$0.value.entry.isCovered(by: scope) }
        _ = try await store.removeAll(in: scope)
    }

    private func look(_ name: String, _ store: any CacheStore) async throws -> String? {
        let key = SampleEntry(key: name, body: []).key
        guard let entry = try await store.entry(for: key) else { return nil }
        guard let expected = latest[name] else { return "gave \(name), which was removed" }
        return try await SampleEntry(entry) == expected ? nil : "gave another \(name)"
    }
}
