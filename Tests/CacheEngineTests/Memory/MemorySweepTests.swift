import CacheTestSupport
import Testing

@testable import CacheEngine

/// Removals of many entries at once.
@Suite struct MemorySweepTests {
    /// A memory with `count` entries; the entry number n has the tag "t" and n modulo `tagCount`.
    private static func tier(_ count: Int, tagCount: Int) -> MemoryTier {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: 64 << 20))
        for number in 0..<count {
            tier.store(MemoryFixtures.entry("k\(number)", tags: ["t\(number % tagCount)"]))
        }
        return tier
    }

    @Test("removals that are asked for together share few walks, and each tells its own entries")
    func removalsAskedForTogetherShareWalks() async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let tier = Self.tier(10_000, tagCount: 100)
        let counts = await Task(executorPreference: executor) {
            await withTaskGroup(of: Int.self) { group in
                for tag in 0..<99 {
                    group.addTask {
                        await tier.removeAll(in: .tag("t\(tag)"), on: executor).entries
                    }
                }
                return await group.reduce(into: []) { $0.append($1) }
            }
        }.value
        #expect(counts == Array(repeating: 100, count: 99))
        #expect(tier.usage().entries == 100)
        #expect(await tier.sweeper.walkCount <= 3)
        #expect(await tier.removeAll(in: .tag("t99")).entries == 100)
    }

    @Test("an entry in two scopes of one walk is counted once")
    func entryInTwoScopesIsCountedOnce() {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: 4 << 20))
        tier.store(MemoryFixtures.entry("both", tags: ["a", "b"]))
        tier.store(MemoryFixtures.entry("second", tags: ["b"]))
        var sweep = ScopeSweep([.tag("a"), .tag("b"), .tag("c")], of: tier.shards)
        while !sweep.isDone { sweep.advance() }
        #expect(sweep.finish().map(\.entries) == [1, 1, 0])
    }

    @Test("a long walk lets other tasks run", arguments: [false, true])
    func longWalkLetsOtherTasksRun(isAlone: Bool) async {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let tier = Self.tier(40_000, tagCount: 1)
        let before = executor.counts.jobs
        let removed = await Task(executorPreference: executor) {
            await tier.removeAll(in: .everything, on: executor, isAlone: isAlone)
        }.value
        #expect(removed.entries == 40_000)
        // A turn looks at 4,096 slots.
        #expect(executor.counts.jobs - before >= 10)
    }
}
