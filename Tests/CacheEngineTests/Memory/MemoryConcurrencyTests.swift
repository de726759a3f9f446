import CAllocationCounter
import CacheTestSupport
import Platform
import Testing

@testable import CacheEngine

@Suite struct MemoryConcurrencyTests {
    /// Readers and writers of the same few keys, in a memory that always evicts.
    @Test func readersSeeWholeEntriesWhileOthersWrite() async {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: 128 << 10, shardCount: 2))
        let torn = await withTaskGroup(of: Int.self) { group in
            for worker in 0..<4 {
                group.addTask { Self.work(on: tier, worker: worker) }
            }
            return await group.reduce(0, +)
        }
        #expect(torn == 0)
        let usage = tier.usage()
        #expect(usage.bytes <= usage.capacityBytes)
    }

    /// Counts the entries that belong to another key or are torn.
    private static func work(on tier: MemoryTier, worker: Int) -> Int {
        var random = SeededRandom(seed: UInt64(worker))
        var torn = 0
        for round in 0..<2_000 {
            let number = random.next() % 48
            let key = "key-\(number)"
            switch random.next() % 8 {
            case 0, 1:
                // The version contains the key's number, so that an entry of another key is
                // detected.
                let version = UInt64(round) << 8 | number
                let count = Int(random.next() % 6_000)
                tier.store(MemoryFixtures.entry(key, version: version, bodyCount: count))
            case 2 where round % 64 == 0: tier.removeAtOnce(in: .storedBefore(unixSeconds: 1))
            case 2: tier.removeKey(key)
            default:
                guard let found = tier.look(key) else { continue }
                if MemoryFixtures.version(of: found).map({ $0 & 0xFF }) != number { torn += 1 }
            }
        }
        return torn
    }

    #if os(Linux)
        /// A program that filters its own system calls after its first look-ups.
        @Test(.enabled(if: !ReaderGate.mustFence))
        func barrierThatIsRefusedAfterTheStartEndsTheProcess() async {
            let ended = await #expect(
                processExitsWith: .failure,
                observing: [\.standardErrorContent]
            ) {
                let tier = MemoryTier(MemoryConfiguration(capacityBytes: 128 << 10, shardCount: 1))
                tier.store(MemoryFixtures.entry("key"))
                #expect(SystemCallFilter.refuseMembarrier())
                tier.removeKey("key")
                tier.releaseRetired()
            }
            let text = String(decoding: ended?.standardErrorContent ?? [], as: UTF8.self)
            #expect(text.contains("The system refuses membarrier"), "\(text)")
        }
    #endif

    /// The first such write ends the process, and not one that happens to release many entries.
    @Test func closureThatWritesEndsTheProcess() async {
        let ended = await #expect(
            processExitsWith: .failure,
            observing: [\.standardErrorContent]
        ) {
            let tier = MemoryTier(MemoryConfiguration(capacityBytes: 4 << 20, shardCount: 1))
            tier.store(MemoryFixtures.entry("key"))
            let key = Array("key".utf8)
            _ = key.withUnsafeBytes { key in
                tier.withEntry(for: MemoryFixtures.hasher.hash(key), key: key) { _ in
                    tier.removeKey("key")
                }
            }
        }
        let text = String(decoding: ended?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("must not write"), "\(text)")
    }

    @Test(.enabled(if: ce_allocation_counting_is_available() == 1))
    func hitAllocatesNothing() {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: 4 << 20))
        tier.store(MemoryFixtures.entry("key"))
        let key = Array("key".utf8)
        let allocations = key.withUnsafeBytes { key in
            let hash = MemoryFixtures.hasher.hash(key)
            _ = tier.entry(for: hash, key: key)
            let before = ce_allocation_count()
            for _ in 0..<100 {
                _ = tier.entry(for: hash, key: key)
                _ = tier.withEntry(for: hash, key: key) { _ = $0.sizeBytes }
            }
            return ce_allocation_count() - before
        }
        #expect(allocations == 0)
    }
}
