import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct MemoryTierTests {
    @Test(arguments: EvictionPolicy.Objective.allCases)
    func storedEntryIsFoundUntilItIsRemoved(objective: EvictionPolicy.Objective) async {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20, policy: .sizeAware(objective)))
        #expect(tier.look("a") == nil)
        #expect(tier.store(MemoryFixtures.entry("a", version: 7)) == .stored)
        #expect(tier.look("a").flatMap(MemoryFixtures.version) == 7)
        #expect(tier.removeKey("a") != nil)
        #expect(tier.look("a") == nil)
        let counters = await tier.counters()
        #expect(counters.hits == 1)
        #expect(counters.misses == 2)
    }

    @Test func refusedReplacementDoesNotLeaveTheOldEntry() {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        tier.store(MemoryFixtures.entry("a", version: 1))
        var calls = 0
        let outcome = tier.store(
            MemoryFixtures.entry("a", version: 2, bodyCount: 1 << 21)
        ) { calls += 1 }
        #expect(outcome == .refused(.tooLarge))
        #expect(calls == 1)
        #expect(tier.look("a") == nil)
        #expect(tier.usage().entries == 0)
    }

    @Test func promotionNeverReplacesAndAsksWhetherItIsCurrent() {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        let old = MemoryFixtures.entry("a", version: 1)
        #expect(!tier.promote(old, onlyIf: { false }))
        #expect(tier.look("a") == nil)
        #expect(tier.promote(old, onlyIf: { true }))
        tier.store(MemoryFixtures.entry("a", version: 2))
        #expect(!tier.promote(old, onlyIf: { true }))
        #expect(tier.look("a").flatMap(MemoryFixtures.version) == 2)
    }

    @Test func promotionIntoAFullMemoryWaitsForASecondRequest() async {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        for index in 0..<2_000 {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 3_000))
        }
        var (refusals, promotions) = (0, 0)
        for index in 0..<200 {
            let entry = MemoryFixtures.entry("d\(index)", version: 1, bodyCount: 3_000)
            let evictions = await tier.counters().evictions
            // There may be room, as evictions come in batches, and the sketch may count requests for
            // other keys as those for this one.
            guard !tier.promote(entry) else { continue }
            refusals += 1
            #expect(await tier.counters().evictions == evictions)
            // The next victim may have been requested twice too.
            guard tier.promote(entry) else { continue }
            #expect(tier.look("d\(index)").flatMap(MemoryFixtures.version) == 1)
            promotions += 1
        }
        #expect(refusals > 10 && promotions > 0, "\(refusals), \(promotions)")
        #expect(tier.usage().bytes <= 1 << 20)
    }

    @Test func trialWatchesOneOfFourAgesIfThereIsADisk() {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        let age = tier.commons.shared.sketchAge
        func watchesInEightAges() -> [Bool] {
            (0..<8).map { _ in
                let now = age.halvings
                while age.halvings == now { age.note(1) }
                return tier.commons.isTrialWatching
            }
        }
        #expect(watchesInEightAges() == Array(repeating: true, count: 8))
        _ = tier.promote(MemoryFixtures.entry("from disk", version: 1))
        #expect(watchesInEightAges().filter { $0 }.count == 2)
    }

    @Test func victimWithHitsKeepsNoPromotionOut() {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20, policy: .sizeAware(.bytes)))
        for index in 0..<2_000 {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 1_000))
        }
        // Every entry that is left was hit often, and none is requested any more.
        for _ in 0..<20 { for index in 0..<2_000 { _ = tier.look("k\(index)") } }
        let entry = MemoryFixtures.entry("from disk", version: 1, bodyCount: 1_000)
        var requests = 0
        while requests < 40, !tier.promote(entry) { requests += 1 }
        #expect(requests < 40)
    }

    @Test func freshenedEntryReplacesOnlyTheOneItWasMadeFrom() {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        let first = MemoryFixtures.entry("a", version: 1)
        let second = MemoryFixtures.entry("a", version: 2)
        let third = MemoryFixtures.entry("a", version: 3)
        tier.store(first)
        #expect(tier.replaceIfSame(second, expecting: first))
        #expect(!tier.replaceIfSame(third, expecting: first))
        #expect(tier.look("a").flatMap(MemoryFixtures.version) == 2)
    }

    @Test func removalByScopeTakesWhatItNamesAndSparesNewerSequences() async {
        let tier = MemoryTier(.init(capacityBytes: 4 << 20))
        for index in 0..<1_000 {
            let isTagged = index % 2 == 0
            tier.store(
                MemoryFixtures.entry(
                    "k\(index)",
                    createdSeconds: UInt32(index),
                    sequence: UInt64(index),
                    flags: index % 5 == 0 ? [.session] : [],
                    tags: isTagged ? ["even", "all"] : ["all"]
                )
            )
        }
        #expect(await tier.removeAll(in: .tag("even")).entries == 500)
        #expect(await tier.removeAll(in: .storageClass(.session)).entries == 100)
        #expect(await tier.removeAll(in: .storedAfter(unixSeconds: 900)).entries == 40)
        #expect(await tier.removeAll(in: .storedBefore(unixSeconds: 100)).entries == 40)
        let left = tier.usage().entries
        #expect(await tier.removeAll(in: .everything).entries == left)
        #expect(tier.usage().entries == 0)
        // The tables remain, at the size they grew to.
        #expect(tier.usage().bytes < 1 << 18)
    }

    @Test func evictedEntriesAreCountedAndCapacityHolds() async {
        let tier = MemoryTier(.init(capacityBytes: 1 << 20))
        for index in 0..<5_000 {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 1_000))
            #expect(tier.usage().bytes <= 1 << 20)
        }
        let counters = await tier.counters()
        #expect(tier.usage().entries + counters.evictions + counters.refusals == 5_000)
        #expect(tier.usage().entries > 500)
    }

    @Test func aSmallerCapacityIsReachedInSteps() async {
        let executor = SeededExecutor(seed: 1)
        let tier = MemoryTier(.init(capacityBytes: 16 << 20))
        for index in 0..<10_000 {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 1_000))
        }
        let turns = Atomic(0)
        let isDone = Atomic(false)
        executor.start {
            await tier.setCapacity(0)
            isDone.store(true, ordering: .relaxed)
        }
        executor.start {
            while !isDone.load(ordering: .relaxed) {
                turns.add(1, ordering: .relaxed)
                await Task.yield()
            }
        }
        await executor.settle()
        #expect(tier.usage().entries == 0)
        #expect(turns.load(ordering: .relaxed) > 10)
    }

    @Test func shrinkingCountsEachVictimAndSparesThePinned() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20))
        for index in 0..<4_000 {
            tier.store(
                MemoryFixtures.entry(
                    "k\(index)",
                    bodyCount: 1_000,
                    flags: index % 10 == 0 ? [.pinned] : []
                )
            )
        }
        let before = tier.usage()
        await tier.shrink(toShare: 0.3)
        let after = tier.usage()
        #expect(after.bytes <= after.capacityBytes * 3 / 10)
        #expect(await tier.counters().evictions == before.entries - after.entries)
        for index in stride(from: 0, to: 4_000, by: 10) { #expect(tier.look("k\(index)") != nil) }
        await tier.shrink(toShare: 0)
        #expect(tier.usage().entries == 0)
    }

    private static func store(
        _ indices: some Sequence<Int>,
        _ flags: EntryHead.Flags,
        in tier: MemoryTier
    ) {
        for index in indices {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 1_000, flags: flags))
        }
    }

    @Test func entryPinnedLaterIsSparedToo() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        let pinned = stride(from: 0, to: 4_000, by: 10)
        Self.store(0..<4_000, [], in: tier)
        for _ in 0..<2 { Self.store(pinned, [.pinned], in: tier) }
        await tier.shrink(toShare: 0.3)
        for index in pinned { #expect(tier.look("k\(index)") != nil) }
    }

    private static func held(_ indices: Range<Int>, in tier: MemoryTier) -> Int {
        indices.count { tier.look("k\($0)") != nil }
    }

    /// The share is 2 MiB, and an entry takes little more than 1,000 bytes.
    @Test func pinnedEntriesBeyondTheShareDoNotPushOutThoseWithin() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        Self.store(0..<4_000, [.pinned], in: tier)
        Self.store(4_000..<7_000, [], in: tier)
        await tier.shrink(toShare: 0.5)
        Self.store(7_000..<10_000, [], in: tier)
        for index in 7_000..<10_000 { _ = tier.look("k\(index)") }
        await tier.shrink(toShare: 0.35)
        #expect(Self.held(0..<4_000, in: tier) > 1_200)
    }

    @Test func pinnedEntryBeyondTheShareIsExemptOnceTheShareHasRoom() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        Self.store(0..<4_000, [.pinned], in: tier)
        // Those that were stored last have the share.
        for index in 1_500..<4_000 { _ = tier.removeKey("k\(index)") }
        Self.store(4_000..<9_000, [], in: tier)
        for index in 4_000..<9_000 { _ = tier.look("k\(index)") }
        await tier.shrink(toShare: 0.35)
        #expect(Self.held(0..<1_500, in: tier) == 1_500)
    }

    @Test func pinnedEntriesInUseAndNewOnesHaveTheShare() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        Self.store(0..<500, [.pinned], in: tier)
        for first in stride(from: 500, to: 4_000, by: 250) {
            Self.store(first..<first + 250, [.pinned], in: tier)
            for index in 0..<500 { #expect(tier.look("k\(index)") != nil) }
        }
        for index in 4_000..<9_000 {
            Self.store([index], [], in: tier)
            _ = tier.look("k\(index)")
        }
        await tier.shrink(toShare: 0.3)
        #expect(Self.held(0..<500, in: tier) == 500)
        #expect(Self.held(3_500..<4_000, in: tier) == 500)
        #expect(Self.held(500..<3_500, in: tier) < 1_500)
    }

    @Test func pinnedEntryThatIsReplacedTakesNoShareFromOthers() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        Self.store(0..<2_500, [.pinned], in: tier)
        for _ in 0..<20 { Self.store(2_400..<2_500, [.pinned], in: tier) }
        Self.store(4_000..<9_000, [], in: tier)
        for index in 4_000..<9_000 { _ = tier.look("k\(index)") }
        await tier.shrink(toShare: 0.3)
        #expect(Self.held(1_500..<2_500, in: tier) == 1_000)
    }

    @Test func entryThatIsPinnedNoLongerIsEvictedLikeOthers() async {
        let tier = MemoryTier(.init(capacityBytes: 8 << 20, pinnedShareMax: 0.25))
        Self.store(0..<400, [.pinned], in: tier)
        Self.store(0..<400, [], in: tier)
        Self.store(400..<4_000, [], in: tier)
        for index in 400..<4_000 { _ = tier.look("k\(index)") }
        await tier.shrink(toShare: 0.1)
        #expect((0..<400).count { tier.look("k\($0)") != nil } < 200)
    }

    @Test func smallerCapacityIsReachedBeforeTheCallReturns() async {
        let tier = MemoryTier(.init(capacityBytes: 4 << 20))
        for index in 0..<3_000 {
            tier.store(MemoryFixtures.entry("k\(index)", bodyCount: 1_000))
        }
        await tier.setCapacity(1 << 20)
        #expect(tier.usage().bytes <= 1 << 20)
        await tier.setCapacity(0)
        #expect(tier.usage().entries == 0)
        #expect(tier.store(MemoryFixtures.entry("a")) == .refused(.tooLarge))
    }
}
