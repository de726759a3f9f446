import CacheTestSupport
import Dispatch
import Platform
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct DiskPoolTests {
    /// The readers wait for the device while their segments become clean.
    @Test func segmentsWithReadersOfTheirOldLifeFailNoWrite() async throws {
        let store = DiskStore(segments: 6)
        let tier = try await store.open()
        for number in 0..<400 { _ = tier.enqueue(try store.entry(number, version: 1)) }
        try await tier.flush()
        let shard = tier.shard(try store.storeKey(399).hash)
        var leases: [ReadLease] = []
        for number in 0..<400 {
            let identity = try store.storeKey(number).hash.identity
            guard case .onDisk(let lease) = shard.state.withLock({ $0.lookUp(identity) }) else {
                continue
            }
            leases.append(lease)
        }
        for number in 400..<1_600 {
            #expect(tier.enqueue(try store.entry(number)) == .stored)
            if number % 40 == 0 { try await tier.flush() }
        }
        try await tier.flush()
        #expect(tier.statistics.writeErrors == 0)
        #expect(try await store.version(1_599) == 0)
        for lease in leases { shard.state.withLock { $0.giveBack(lease) } }
        await store.close()
    }

    @Test func readersOfOneKeyShareOneRead() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(volume: .replaced(files))
        store.configuration.ioThreads = 1
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        let key = try store.storeKey(1)
        // Blocks the only thread until all readers wait.
        let gate = DispatchSemaphore(value: 0)
        #expect(tier.shards[0].pool.submit { gate.wait() })
        let hits = await withTaskGroup(of: Bool.self) { group in
            for _ in 0..<10 {
                group.addTask {
                    let result = await tier.readWaiting(key.hash, key: key.bytes)
                    if case .hit = result { return true }
                    return false
                }
            }
            _ = await eventually { tier.statistics.readsJoined == 9 }
            gate.signal()
            return await group.reduce(0) { $0 + ($1 ? 1 : 0) }
        }
        #expect(hits == 10)
        #expect(tier.statistics.readsJoined == 9)
        await store.close()
    }

    @Test func jobsBeyondTheLimitAreRefusedAndClosingOnesAreNot() async {
        let pool = IOPool(threadCount: 1, jobsMax: 2)
        let gate = DispatchSemaphore(value: 0)
        let started = DispatchSemaphore(value: 0)
        let done = Atomic<Int>(0)
        #expect(
            pool.submit {
                started.signal()
                gate.wait()
            }
        )
        started.wait()
        #expect(pool.submit {} && pool.submit {})
        #expect(!pool.submit {})
        #expect(await pool.run { 1 } == nil)
        pool.submitClosing { done.store(1, ordering: .releasing) }
        gate.signal()
        #expect(await eventually { done.load(ordering: .acquiring) == 1 })
    }

    @Test func openingWithoutAThreadFails() async throws {
        let pool = IOPool(threadCount: 2, start: { _ in false })
        #expect(await pool.run { true } == nil)
        let store = DiskStore()
        store.configuration.pool = pool
        await #expect { try await store.open() } throws: {
            ($0 as? CacheError)?.code == .directoryUnusable
        }
    }

    @Test func oneThreadOfSeveralDoesTheWorkOfAll() async throws {
        let hasOne = Atomic<Bool>(false)
        let pool = IOPool(threadCount: 4) { run in
            if hasOne.exchange(true, ordering: .relaxed) { return false }
            return SystemThread.startWithoutSignals(run)
        }
        #expect(await pool.run { true } == true)
    }

    /// The last holder of a large body does this: it closes the file with a job.
    @Test func jobMaySubmitAnotherFromADeinit() async {
        let pool = IOPool(threadCount: 1)
        let gate = DispatchSemaphore(value: 0)
        let done = Atomic<Int>(0)
        #expect(pool.submit { gate.wait() })
        for _ in 0..<10 {
            let guest = Guest { pool.submitClosing { done.add(1, ordering: .releasing) } }
            #expect(pool.submit { withExtendedLifetime(guest) {} })
        }
        gate.signal()
        let isDone = await eventually { done.load(ordering: .acquiring) == 10 }
        #expect(isDone)
        // A blocked pool would also block the thread that releases it.
        if !isDone { _ = Unmanaged.passRetained(pool) }
    }

    /// Calls a closure when it is released.
    private final class Guest: Sendable {
        private let onEnd: @Sendable () -> Void
        init(onEnd: @escaping @Sendable () -> Void) { self.onEnd = onEnd }
        deinit { onEnd() }
    }

    @Test func capacityIsReachedBeforeTheCallReturns() async throws {
        let files = FaultyFileSystem(seed: 2)
        let store = DiskStore(segments: 16, volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<800 { _ = tier.enqueue(try store.entry(number, version: 4)) }
        try await LargeBodyTests.write(2_000, bytes: 40_000, in: store)
        try await tier.flush()
        for segments in [8, 5, 2, 0, 4] {
            let reserved = DiskGeometry.reservedBytes(shardCount: 1)
            let capacity = segments * (64 << 10) + reserved
            try await tier.setCapacity(capacity)
            #expect(files.totalBytes <= capacity, "\(segments)")
            #expect(await tier.usage().capacityBytes == capacity)
            #if ENGINE_CHECKS
                await tier.checkInvariants()
            #endif
        }
        _ = tier.enqueue(try store.entry(3_000))
        try await tier.flush()
        #expect(try await store.version(3_000) == 0)
        await store.close()
    }

    /// What the shard has to write meanwhile waits for one segment, and not for all of them.
    @Test func capacityIsReachedInSteps() async throws {
        let store = DiskStore(segments: 32, volume: .replaced(FaultyFileSystem(seed: 2)))
        let tier = try await store.open()
        for number in 0..<1_600 {
            let entry = try store.entry(number, version: 4, bytes: 900)
            #expect(tier.enqueue(entry) == .stored)
            if number % 40 == 39 { try await tier.flush() }
        }
        let shard = tier.shards[0]
        let before = await shard.segmentCount
        #expect(before > 20)
        shard.setCapacity(4 * (64 << 10), entryBytesMax: 32 << 10)
        var (bodiesMax, steps) = (Int.max, 0)
        while let next = try await shard.shrink(bodiesMax: bodiesMax) {
            (bodiesMax, steps) = (next, steps + 1)
            #expect(await shard.segmentCount >= before - steps)
            // Its lane does other work between two steps.
            _ = try await tier.remove(store.storeKey(1_600 - steps))
        }
        #expect(shard.ledger.balance.freeBytes >= 0)
        #expect(await shard.segmentCount == 4)
        await store.close()
    }

    /// The shards take their capacities before any of them makes room.
    @Test func shardsHaveOneCapacityHoweverManyAreSetAtOnce() async throws {
        let store = DiskStore(segments: 8, shards: 4, volume: .replaced(FaultyFileSystem(seed: 2)))
        let tier = try await store.open()
        for number in 0..<400 { _ = tier.enqueue(try store.entry(number, version: 4)) }
        try await tier.flush()
        let reserved = DiskGeometry.reservedBytes(shardCount: 4)
        for _ in 0..<100 {
            await withTaskGroup(of: Void.self) { group in
                for segments in 4...8 {
                    let capacity = 4 * segments * (64 << 10) + reserved
                    group.addTask { try? await tier.setCapacity(capacity) }
                }
            }
            let shares = Set(tier.shards.map { $0.ledger.balance.capacityBytes })
            #expect(shares == [DiskGeometry.shareBytes(tier.capacityBytes, shardCount: 4)])
            #expect(tier.shards.allSatisfy { $0.ledger.balance.freeBytes >= 0 })
        }
        await store.close()
    }

    /// No record can come back, so a removal needs none.
    @Test func removalsHoldThoughTheCapacityHasNoRoomForASegment() async throws {
        let store = DiskStore(segments: 16, volume: .replaced(FaultyFileSystem(seed: 2)))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1, tags: ["t"]))
        try await tier.flush()
        try await tier.setCapacity(DiskGeometry.reservedBytes(shardCount: 1))
        for _ in 0..<5 {
            _ = try await tier.removeAll(in: .tag("t"))
            _ = try await tier.removeAll(in: .everything)
            _ = try await tier.remove(store.storeKey(1))
            try await tier.markStale("t")
            try await tier.flush()
            #expect(tier.enqueue(try store.entry(2)) == .refused(.notAdmitted))
        }
        #expect(tier.entryBytesMax == 0)
        #expect(tier.statistics.writeErrors == 0 && tier.statistics.shardsFailed == 0)
        try await tier.setCapacity(store.configuration.capacityBytes)
        #expect(tier.enqueue(try store.entry(2, tags: ["t"])) == .stored)
        try await tier.flush()
        #expect(try await store.version(2) == 0)
        _ = try await tier.removeAll(in: .tag("t"))
        for _ in 0..<2 {
            #expect(try await store.version(2) == nil)
            _ = try await store.reopen()
        }
        await store.close()
    }

    /// The records of a file that cannot be opened may be readable one day.
    @Test func removalNeedsARecordIfASegmentFileIsUnknown() async throws {
        let files = FaultyFileSystem(seed: 2)
        let store = DiskStore(segments: 16, volume: .replaced(files))
        var tier = try await store.open()
        _ = tier.enqueue(try store.entry(1, tags: ["t"]))
        await store.close()
        files.addLink(try #require(files.paths.first { $0.hasSuffix(".seg") }))
        tier = try await store.open()
        try await tier.setCapacity(DiskGeometry.reservedBytes(shardCount: 1))
        await #expect(throws: CacheError.self) { _ = try await tier.removeAll(in: .tag("t")) }
        await store.close()
    }

    private static func purgeTable() -> PurgeTable {
        PurgeTable(hasher: KeyHasher(seed: KeyHash(placement: 1, identity: 2)))
    }

    /// Whether the table covers a permanent entry of second 0 with that number and tag.
    private static func covers(_ sequence: UInt64, tag: String, _ table: PurgeTable) throws -> Bool
    {
        try #require(TagList([tag])).bytes.withUnsafeBytes { tags in
            [].withUnsafeBytes { key in
                table.covers(
                    sequence: sequence,
                    flags: [],
                    createdSeconds: 0,
                    key: key,
                    tags: tags
                )
            }
        }
    }

    @Test(arguments: [
        RemovalScope.tag("t"), .storedBefore(unixSeconds: 1), .storedAfter(unixSeconds: 0),
        .storageClass(.permanent), .everything,
    ])
    func olderPurgeTakesNothingFromANewerOne(scope: RemovalScope) throws {
        var purges = Self.purgeTable()
        for sequence: UInt64 in [7, 5] { purges.insert(scope, sequence: sequence) }
        #expect(try Self.covers(6, tag: "t", purges))
        #expect(try !Self.covers(8, tag: "t", purges))
    }

    @Test func purgeThatAFullTableKnowsMakesNoOtherEntryDead() throws {
        var purges = Self.purgeTable()
        for number in 0..<PurgeTable.tagsMax {
            purges.insert(.tag("t\(number)"), sequence: UInt64(number) + 1)
        }
        purges.insert(.tag("t7"), sequence: 1_000_000)
        #expect(try Self.covers(900_000, tag: "t7", purges))
        #expect(try !Self.covers(900_000, tag: "other", purges))
    }

    /// Tombstones are accepted though the numbers that a place can name have ended.
    @Test func numberThatNoPlaceCanNameIsNotUsedAgain() throws {
        let hash = KeyHash(placement: 0, identity: 1)
        var queue = WriteQueue(nodesMax: 4)
        var nodes: [Int] = []
        for sequence: UInt64 in 1...10 {
            if sequence == 7 {
                for taken in queue.take(bytesMax: .max) { _ = queue.finish(taken.node) }
            }
            let node = queue.push(
                .tombstone,
                hash: hash,
                sequence: sequence,
                sizeBytes: 0,
                coversOlderRecord: true
            )
            nodes.append(node)
        }
        #expect(nodes[..<6] == [0, 1, 2, 3, 4, 5])
        #expect(Set(nodes[6...]) == [0, 1, 2, 3])
        let isAtLimit = queue.isAtNodeLimit
        #expect(isAtLimit)
        #if ENGINE_CHECKS
            queue.checkInvariants()
        #endif
    }

    @Test func nodesThatFailedInPartsAreQueuedInTheirOrder() {
        var queue = WriteQueue()
        for sequence: UInt64 in 1...5 {
            _ = queue.push(
                .tombstone,
                hash: KeyHash(placement: 0, identity: sequence),
                sequence: sequence,
                sizeBytes: 0,
                coversOlderRecord: true
            )
        }
        let taken = queue.take(bytesMax: 4 * EntryHead.sizeBytes).map(\.node)
        #expect(taken.count == 4)
        queue.putBack([taken[0], taken[2]])
        queue.putBack([taken[1], taken[3]])
        #if ENGINE_CHECKS
            queue.checkInvariants()
        #endif
        let again = queue.take(bytesMax: .max).map(\.sequence)
        #expect(again == [1, 2, 3, 4, 5])
    }

    @Test func purgesBeyondTheLimitMakeEverythingOlderDead() {
        var purges = Self.purgeTable()
        for number in 0..<PurgeTable.tagsMax / 2 {
            purges.insert(.tag("t\(number)"), sequence: UInt64(number) + 100)
        }
        func covers(_ sequence: UInt64) -> Bool {
            [].withUnsafeBytes { none in
                purges.covers(
                    sequence: sequence,
                    flags: [],
                    createdSeconds: 0,
                    key: none,
                    tags: none
                )
            }
        }
        #expect(!covers(50))
        for number in 0..<PurgeTable.tagsMax {
            purges.insert(.tag("more \(number)"), sequence: UInt64(number) + 1_000_000)
        }
        #expect(covers(1_000_000) && !covers(2_000_000))
    }
}
