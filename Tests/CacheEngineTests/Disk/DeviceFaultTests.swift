import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// A device that is full, fails or is lost: entries may go, and none that was removed returns.
@Suite struct DeviceFaultTests {
    let files = FaultyFileSystem(seed: 1)

    /// Stores small entries, twenty to a batch, and pins every eighth one if `pinsSome`.
    private func fill(
        _ store: DiskStore,
        _ numbers: Range<Int>,
        pinsSome: Bool = false
    ) async throws {
        let tier = try #require(store.tier)
        for number in numbers {
            let flags: EntryHead.Flags = pinsSome && number % 8 == 0 ? .pinned : []
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: flags))
            if number % 20 == 0 { try await tier.flush() }
        }
        try await tier.flush()
    }

    /// The room of such a segment is neither lost nor counted twice, and no entry goes for it.
    @Test(arguments: [false, true])
    func segmentThatCannotBeUnlinkedStaysInUse(isReadOnly: Bool) async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        try await fill(store, 0..<800)
        let capacity = store.configuration.capacityBytes
        let held = tier.statistics.indexEntries
        if isReadOnly { files.plan.isReadOnly = true } else { files.plan.keepsNames = true }
        await #expect(throws: CacheError.self) { try await tier.setCapacity(capacity / 2) }
        #expect(tier.statistics.indexEntries == held)
        #expect(tier.statistics.writeErrors > 0)
        files.plan = .init()
        try await tier.setCapacity(capacity)
        try await fill(store, 800..<1_600)
        #expect(await tier.shards[0].segmentCount == 8)
        #expect(files.paths.filter { $0.hasSuffix(".seg") }.count == 8)
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
        await store.close()
    }

    /// Each body asks for room, and a reclaim would give none.
    @Test func refusedBodiesLeaveTheLogAloneIfNothingCanBeUnlinked() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        try await fill(store, 0..<800)
        let held = tier.statistics.indexEntries
        files.plan.keepsNames = true
        for number in 1_000..<1_020 {
            await #expect(throws: CacheError.self) {
                try await LargeBodyTests.write(number, version: 4, bytes: 36_000, in: store)
            }
        }
        #expect(tier.statistics.indexEntries == held)
        files.plan = .init()
        #expect(
            try await LargeBodyTests.write(2_000, version: 4, bytes: 36_000, in: store) == .stored
        )
        await store.close()
    }

    /// One body is given up by its writer, and another one was replaced.
    @Test func bodyThatCannotBeUnlinkedKeepsItsRoom() async throws {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 64, volume: .replaced(files))
        store.configuration.ioThreads = 1
        let tier = try await store.open()
        try await LargeBodyTests.write(1, version: 4, in: store)
        try await tier.flush()
        let writer = try await tier.beginBody(for: store.storeKey(2).hash, expectedBytes: nil)
        try await writer.append(ByteChunk("half"))
        let used = tier.statistics.fileBytes
        files.plan.keepsNames = true
        await writer.abandon()
        #expect(tier.enqueue(try store.entry(1, version: 1)) == .stored)
        try await tier.flush()
        // The pool's only thread erases a doomed file before it does this.
        #expect(await tier.shards[0].pool.run { true } == true)
        #expect(tier.statistics.fileBytes == used)
        #expect(tier.statistics.writeErrors == 2)
        files.plan = .init()
        try await tier.setCapacity((256 << 10) + DiskGeometry.reservedBytes(shardCount: 1))
        #expect(files.paths.allSatisfy { !$0.hasSuffix(".body") })
        #expect(tier.statistics.fileBytes == 256 << 10)
        #expect(try await store.version(1) == 1)
        await store.close()
    }

    /// The file may be damaged; its directory is not.
    @Test func oneBodyThatCannotBeUnlinkedEndsNoOther() async throws {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 64, volume: .replaced(files))
        let tier = try await store.open()
        #expect(try await LargeBodyTests.write(0, version: 4, in: store) == .stored)
        try await tier.flush()
        files.plan.forbidden = Set(files.paths.filter { $0.hasSuffix(".body") })
        files.plan.keepsForbidden = true
        var refusedCount = 0
        for number in 1...40 {
            do {
                #expect(try await LargeBodyTests.write(number, version: 4, in: store) == .stored)
                try await tier.flush()
            } catch { refusedCount += 1 }
        }
        #expect(tier.statistics.writeErrors > 0)
        // The one whose room the damaged file was to give.
        #expect(refusedCount <= 1)
        #expect(try await store.read(40) != nil)
        await store.close()
    }

    /// The first shard cannot be written, and the second is written all the same.
    @Test func flushWritesEveryShardThoughOneFails() async throws {
        let store = DiskStore(shards: 2, volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        for number in 0..<20 { _ = tier.enqueue(try store.entry(number)) }
        try await tier.flush()
        files.plan.unwritable = files.paths.first { $0.hasSuffix(".seg") }
        for number in 20..<40 { _ = tier.enqueue(try store.entry(number)) }
        await #expect(throws: CacheError.self) { try await tier.flush() }
        files.endProcess()
        files.plan = .init()
        _ = try await store.open()
        for number in 20..<40 where tier.shard(try store.storeKey(number).hash) === tier.shards[1] {
            #expect(try await store.version(number) == 0, "\(number)")
        }
        await store.close()
    }

    /// The lost entry may be that of any of the callers.
    @Test func lossIsReportedToEveryFlushThatWasCalledBeforeTheReport() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        let shard = tier.shards[0]
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.writeError = 1_000
        _ = tier.enqueue(try store.entry(2))
        _ = await shard.drainAll()
        files.plan = .init()
        let reported = shard.state.withLock { $0.reportedLosses }
        for _ in 0..<2 {
            await #expect(throws: CacheError.self) { try await shard.flush(reported: reported) }
        }
        try await tier.flush()
        await store.close()
    }

    @Test func fullDeviceRefusesAndWorksAgainWhenThereIsRoom() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.capacityBytes = files.totalBytes
        files.plan.writeError = 1_000
        for number in 2..<10 {
            _ = tier.enqueue(try store.entry(number))
            await #expect(throws: CacheError.self) { try await tier.flush() }
        }
        #expect(tier.statistics.shardsFailed == 1)
        #expect(tier.enqueue(try store.entry(11)) == .refused(.deviceFailed))
        #expect(try await store.version(1) == 0, "what is there stays readable")
        files.plan = .init()
        try await tier.flush()
        #expect(tier.statistics.shardsFailed == 0)
        #expect(tier.enqueue(try store.entry(12)) == .stored)
        try await tier.flush()
        #expect(try await store.version(12) == 0)
        _ = try await store.reopen()
        #expect(try await store.version(12) == 0)
        #expect(try await store.version(5) == nil)
        await store.close()
    }

    /// A smaller capacity makes the shard write before it tries its device again.
    @Test func failedShardWorksAgainAfterAReclaimThatWrites() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        try await fill(store, 0..<800, pinsSome: true)
        files.plan.writeError = 1_000
        _ = tier.enqueue(try store.entry(800))
        for _ in 0..<4 where tier.statistics.shardsFailed == 0 { try? await tier.flush() }
        #expect(tier.statistics.shardsFailed == 1)
        files.plan = .init()
        try await tier.setCapacity(store.configuration.capacityBytes - 3 * (64 << 10))
        try #require(tier.statistics.shardsFailed == 0)
        #expect(tier.enqueue(try store.entry(801)) == .stored)
        try await tier.flush()
        #expect(try await store.version(801) == 0)
        await store.close()
    }

    /// A file system that copies what is written again has room for a page, and for no batch.
    @Test func deviceThatTakesHeadersOnlyKeepsWhatIsThere() async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<400 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 19 { try await tier.flush() }
        }
        let held = await tier.usage().entries
        #expect(tier.statistics.segmentsReclaimed > 0)
        files.plan.unwritableBytes = SegmentHeader.sizeBytes..<64 << 10
        for number in 400..<410 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 9_000))
            await #expect(throws: CacheError.self) { try await tier.flush() }
        }
        // The first new segment makes room for the next one.
        #expect(await tier.usage().entries > held - 60)
        files.plan = .init()
        try await tier.flush()
        _ = tier.enqueue(try store.entry(500, version: 4))
        let killed = files.copy(afterPowerCut: false)
        await store.close()
        _ = try await store.open()
        #expect(try await store.version(399) == 4)
        #expect(try await store.version(500) == 4)
        await store.close()
        store.volume = .replaced(killed)
        _ = try await store.open()
        #expect(try await store.version(399) == 4)
        await store.close()
    }

    @Test func failedReplacementDoesNotRestoreTheOldEntry() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.writeError = 1_000
        #expect(tier.enqueue(try store.entry(1, version: 1)) == .stored)
        await #expect(throws: CacheError.self) { try await tier.flush() }
        #expect(try await store.version(1) == nil)
        files.plan = .init()
        try await tier.flush()
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func deviceThatFailsForEverCollectsNoPurges() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<3 { _ = tier.enqueue(try store.entry(number)) }
        try await tier.flush()
        files.plan.writeError = 1_000
        _ = tier.enqueue(try store.entry(3))
        for _ in 0..<10 where tier.statistics.shardsFailed == 0 { try? await tier.flush() }
        #expect(tier.statistics.shardsFailed == 1)
        let shard = tier.shard(try store.storeKey(1).hash)
        for number in 0..<70_000 { _ = try shard.forgetAll(in: .tag("tag\(number)")) }
        #expect(shard.state.withLock { $0.queue.liveCount } <= PurgeTable.tagsMax + 10)
        #expect(try await store.version(1) == nil)
        files.plan = .init()
        _ = try await store.reopen()
        for number in 0..<4 { #expect(try await store.version(number) == nil) }
        await store.close()
    }

    /// The body's room is made by a reclaim, which writes into the open segment as well.
    @Test func removalsBesideABodyStayInTheirOrderThoughTheirSegmentFails() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        store.configuration.entryBytesMax = 1 << 20
        let tier = try await store.open()
        try await fill(store, 0..<800, pinsSome: true)
        let shard = tier.shards[0]
        // The open segment has room for what comes: it fails at a batch, not at its end.
        _ = tier.enqueue(try store.entry(900, version: 4, bytes: 900))
        try await tier.flush()
        #expect(await shard.hasRoom(1_024))
        files.plan.unwritable = await shard.openSegmentPath
        #expect(files.plan.unwritable != nil)
        _ = try shard.forgetAll(in: .tag("t"))
        let large = try store.entry(1_000, version: 4, bytes: 200_000, tags: ["t"])
        #expect(tier.enqueue(large) == .stored)
        _ = try shard.forgetAll(in: .tag("t"))
        try? await tier.flush()
        files.plan = .init()
        try await tier.flush()
        #expect(tier.statistics.writeErrors == 1)
        let again = DiskStore(volume: .replaced(files.copy(afterPowerCut: false)))
        again.configuration = store.configuration
        _ = try await again.open()
        #expect(try await again.version(1_000) == nil)
        await again.close()
        await store.close()
    }

    /// A body that finds no file is lost after the call has begun, and so is its old version.
    @Test func settledReplacementThatIsLostDoesNotRestoreTheOldEntry() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        store.configuration.flushMilliseconds = 60_000
        store.configuration.entryBytesMax = 100_000
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.openFilesMax = 0
        #expect(tier.enqueue(try store.entry(1, version: 1, bytes: 60_000)) == .stored)
        try await tier.settle(try store.storeKey(1).hash)
        let kill = files.snapshot()
        files.plan = .init()
        await store.close()
        files.restore(kill)
        _ = try await store.open()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    /// The removal found no entry and wrote no record: the segment itself shows that it is
    /// reclaimed.
    @Test func removalOfWhatWasReclaimedHoldsAfterAKill() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        var kills: [(files: [String: [UInt8]], removed: [Int])] = []
        var reclaimed = 0
        for number in 0..<200 {
            _ = tier.enqueue(try store.entry(number, version: 4))
            try await tier.flush()
            guard tier.statistics.segmentsReclaimed > reclaimed else { continue }
            reclaimed = tier.statistics.segmentsReclaimed
            let removed = try (0..<number).filter { try !tier.contains(store.storeKey($0).hash) }
            for number in removed {
                #expect(tier.enqueueRemoval(try store.storeKey(number).hash) == false)
            }
            kills.append((files.snapshot(), removed))
        }
        await store.close()
        #expect(kills.count > 3)
        for kill in kills {
            files.restore(kill.files)
            _ = try await store.open()
            for number in kill.removed {
                #expect(try await store.version(number) == nil, "\(number) is back")
            }
            await store.close()
        }
    }

    /// Pinned entries are written again while their segment is reclaimed.
    @Test func killWhileASegmentIsReclaimedLosesNoPinnedEntry() async throws {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        for number in 0..<20 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: .pinned))
        }
        try await tier.flush()
        files.plan.keepsHistory = true
        for number in 20..<420 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 19 { try await tier.flush() }
        }
        files.plan = .init()
        #expect(tier.statistics.segmentsReclaimed > 0 && tier.statistics.reinsertions >= 20)
        await store.close()
        for (number, kill) in files.history.enumerated() {
            files.restore(kill)
            _ = try await store.open()
            for pinned in 0..<20 {
                #expect(try await store.version(pinned) == 4, "\(pinned), write \(number)")
            }
            await store.close()
        }
    }

    @Test func directoryRemovedUnderTheTierLosesNothingButTheCache() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.erase(store.directory)
        for number in 0..<400 {
            _ = tier.enqueue(try store.entry(number, version: 4))
            if number % 40 == 0 { try? await tier.flush() }
        }
        _ = try await store.version(1)
        await store.close()
        _ = try await store.open()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func readErrorIsAMissAndTheEntryIsGoneForGood() async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.readError = 1_000
        files.plan.cold = 1_000
        #expect(try await store.version(1) == nil)
        #expect(tier.statistics.readErrors == 1)
        files.plan = .init()
        #expect(try await store.version(1) == nil)
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        await store.close()
    }
}

extension DiskShard {
    var openSegmentPath: String? { writer.segment.map { segmentPath($0.slot) } }
}
