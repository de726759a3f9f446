import CacheTestSupport
import Testing

@testable import CacheEngine

/// The place of an entry that is replaced, and the capacity while an entry is stored.
@Suite struct MemoryReplacingTests {
    private static let capacityBytes = 4 << 20

    /// A memory that is full of entries of 4 % of it, which were hit often, and their keys.
    private static func full() -> (tier: MemoryTier, keys: [String]) {
        let tier = MemoryTier(.init(capacityBytes: capacityBytes))
        let keys = (0..<40).map { "key-\($0)" }
        for key in keys {
            tier.store(MemoryFixtures.entry(key, version: 1, bodyCount: capacityBytes / 25))
        }
        let held = keys.filter { tier.look($0) != nil }
        for _ in 0..<20 { for key in held { _ = tier.look(key) } }
        return (tier, held)
    }

    @Test func confirmedEntryOfAFullMemoryKeepsItsPlace() async throws {
        let (tier, keys) = Self.full()
        #expect(keys.count > 15 && keys.count < 40)
        let before = await tier.counters()
        for key in keys {
            let old = try #require(tier.look(key))
            let new = MemoryFixtures.entry(key, version: 2, bodyCount: Self.capacityBytes / 25)
            #expect(tier.replaceIfSame(new, expecting: old), "\(key)")
            #expect(tier.usage().bytes <= Self.capacityBytes)
        }
        for key in keys {
            #expect(tier.look(key).flatMap(MemoryFixtures.version) == 2, "\(key)")
        }
        let after = await tier.counters()
        #expect(after.refusals == before.refusals)
        #expect(after.evictions == before.evictions)
    }

    @Test func entryOfMostOfTheMemoryIsReplaced() throws {
        let tier = MemoryTier(.init(capacityBytes: Self.capacityBytes))
        let size = Self.capacityBytes / 10 * 6
        tier.store(MemoryFixtures.entry("key", version: 1, bodyCount: size))
        for version in 2...4 as ClosedRange<UInt64> {
            let old = try #require(tier.look("key"))
            let new = MemoryFixtures.entry("key", version: version, bodyCount: size)
            #expect(tier.replaceIfSame(new, expecting: old))
            #expect(tier.look("key").flatMap(MemoryFixtures.version) == version)
            #expect(tier.usage().bytes <= Self.capacityBytes)
        }
        #expect(tier.store(MemoryFixtures.entry("key", version: 5, bodyCount: 10)) == .stored)
        #expect(tier.usage().bytes < Self.capacityBytes / 10)
    }

    /// A larger entry takes the rest from others, and is judged as any other of that size.
    @Test func entryThatGrowsEvictsOthers() throws {
        let (tier, keys) = Self.full()
        let key = try #require(keys.last)
        let old = try #require(tier.look(key))
        let new = MemoryFixtures.entry(key, version: 2, bodyCount: Self.capacityBytes / 20)
        _ = tier.replaceIfSame(new, expecting: old)
        #expect(tier.usage().bytes <= Self.capacityBytes)
        let found = tier.look(key).flatMap(MemoryFixtures.version)
        #expect(found == nil || found == 2)
    }

    /// The capacity shrinks after the entry has taken its bytes, while there is nothing to evict.
    @Test(arguments: [0, 1 << 20])
    func entryUnderWayYieldsToASmallerCapacity(capacityBytes: Int) {
        let tier = MemoryTier(.init(capacityBytes: 64 << 20))
        let entry = MemoryFixtures.entry("key", version: 1, bodyCount: 30 << 20)
        tier.store(
            entry,
            onlyIf: {
                tier.resize(capacityBytes)
                return true
            }
        )
        #expect(tier.usage().entries == 0)
        #expect(tier.commons.used.pendingBytes == 0)
    }

    @Test func storeThatIsNotMeantIsNoRefusal() async {
        let tier = MemoryTier(.init(capacityBytes: Self.capacityBytes))
        tier.store(MemoryFixtures.entry("key", version: 1))
        var calls = 0
        let outcome = tier.shards.refuse(
            MemoryFixtures.entry("key", version: 2),
            .notAdmitted,
            onlyIf: { $0 == nil },
            whileLocked: { calls += 1 }
        )
        #expect(outcome == nil)
        #expect(calls == 0)
        #expect(await tier.counters().refusals == 0)
        #expect(tier.look("key").flatMap(MemoryFixtures.version) == 1)
    }
}
