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

    @Test("a walk compares an entry with the scopes that its own tags name, of any number")
    func walkComparesAnEntryWithItsOwnScopes() {
        let tier = Self.tier(4_096, tagCount: 128)
        // Each tag, class and time twice; of two equal scopes, the first one counts.
        let tags = (64..<1_064).map { RemovalScope.tag("t\($0)") }
        let others: [RemovalScope] = [.storageClass(.session), .storedBefore(unixSeconds: 0)]
        var sweep = ScopeSweep(tags + others + tags + others, of: tier.shards)
        while !sweep.isDone { sweep.advance() }
        #expect(sweep.scopes.comparisonCount == 4_096 * others.count + 4_096 / 2)
        let counts = sweep.finish().map(\.entries)
        #expect(counts == Array(repeating: 32, count: 64) + Array(repeating: 0, count: 1_940))
        #expect(tier.usage().entries == 4_096 / 2)
    }

    @Test("an entry in scopes of several kinds counts for the first of them")
    func entryInScopesOfSeveralKindsCountsForTheFirst() {
        let scopes: [RemovalScope] = [
            .tag("a"), .storageClass(.permanent), .tag("b"), .everything,
        ]
        for rotation in scopes.indices {
            let scopes = Array(scopes[rotation...] + scopes[..<rotation])
            let tier = MemoryTier(MemoryConfiguration(capacityBytes: 4 << 20))
            var expected = scopes.map { _ in 0 }
            for (number, tags) in [["b", "a"], ["b"], ["c"], []].enumerated() {
                let entry = MemoryFixtures.entry("k\(number)", tags: tags)
                tier.store(entry)
                expected[scopes.firstIndex(where: entry.isCovered) ?? 0] += 1
            }
            var sweep = ScopeSweep(scopes, of: tier.shards)
            while !sweep.isDone { sweep.advance() }
            #expect(sweep.finish().map(\.entries) == expected)
        }
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
