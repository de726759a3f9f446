import CacheTestSupport
import Testing

@testable import CacheEngine

/// Compares the memory with a map that forgets nothing.
///
/// The memory may forget entries, but must not invent them, bring them back or exceed its capacity.
@Suite struct MemoryModelTests {
    private struct Legal {
        var entry: Entry
        var version: UInt64
        var isTagged: Bool
    }

    private static let objectives = EvictionPolicy.Objective.allCases

    @Test(arguments: 0..<UInt64(64))
    func memoryNeverReturnsAWrongOrRemovedEntry(seed: UInt64) async {
        var random = SeededRandom(seed: seed)
        let tier = MemoryTier(
            MemoryConfiguration(
                capacityBytes: 256 << 10,
                policy: .sizeAware(Self.objectives[Int(seed % 3)]),
                shardCount: 1 << Int(seed / 4 % 4)
            )
        )
        var model: [String: Legal] = [:]
        var now: UInt32 = 100
        var version: UInt64 = 0
        for _ in 0..<300 {
            let key = "key-\(random.next() % 60)"
            version += 1
            let isTagged = random.next() % 2 == 0
            let entry = MemoryFixtures.entry(
                key,
                version: version,
                bodyCount: Int(random.next() % (random.next() % 8 == 0 ? 60_000 : 3_000)),
                createdSeconds: now,
                flags: random.next() % 10 == 0 ? [.pinned] : [],
                tags: isTagged ? ["t"] : []
            )
            let legal = Legal(entry: entry, version: version, isTagged: isTagged)
            switch random.next() % 20 {
            case 0..<8:
                let outcome = tier.store(entry)
                model[key] = outcome == .stored ? legal : nil
            case 8:
                if tier.promote(entry) {
                    // Only an entry that the memory had evicted may be promoted.
                    model[key] = legal
                }
            case 9:
                guard let old = model[key] else { break }
                let isReplaced = tier.replaceIfSame(entry, expecting: old.entry)
                if isReplaced { model[key] = tier.look(key) == nil ? nil : legal }
            case 10:
                tier.removeKey(key)
                model[key] = nil
            case 11:
                _ = await tier.removeAll(in: .tag("t"))
                model = model.filter { !$0.value.isTagged }
            case 12: now += UInt32(random.next() % 5)
            case 13: tier.releaseRetired()
            case 14: await tier.setCapacity(192 << 10 + Int(random.next() % (256 << 10)))
            default: Self.compare(tier, model, key, seed)
            }
            let usage = tier.usage()
            #expect(usage.bytes <= usage.capacityBytes, "seed \(seed)")
        }
        for key in model.keys { Self.compare(tier, model, key, seed) }
        let left = tier.usage().entries
        #expect(await tier.removeAll(in: .everything).entries == left)
        for key in model.keys { #expect(tier.look(key) == nil, "seed \(seed)") }
    }

    private static func compare(
        _ tier: MemoryTier,
        _ model: [String: Legal],
        _ key: String,
        _ seed: UInt64
    ) {
        guard let found = tier.look(key) else { return }
        #expect(MemoryFixtures.version(of: found) == model[key]?.version, "seed \(seed) \(key)")
    }
}
