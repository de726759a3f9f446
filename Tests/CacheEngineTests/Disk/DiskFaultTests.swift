import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// Files changed by others: the result is a clear error or a smaller cache.
@Suite struct DiskFaultTests {
    let files = FaultyFileSystem(seed: 1)

    /// A closed store of a few small entries, one of them removed, and its files.
    private func smallStore() async throws -> (DiskStore, [String: [UInt8]]) {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        store.configuration.foreignDirectory = .startEmpty
        let tier = try await store.open()
        for number in 0..<3 { _ = tier.enqueue(try store.entry(number, bytes: 40)) }
        try await tier.flush()
        _ = tier.enqueue(try store.entry(1, version: 1, bytes: 40, tags: ["t"]))
        tier.enqueueRemoval(try store.storeKey(2).hash)
        await store.close()
        return (store, files.snapshot())
    }

    /// Opens the store and checks every readable entry.
    ///
    /// Each must be a version that was stored once. Removed entries must stay removed, unless
    /// `mayResurrect`.
    private func check(_ store: DiskStore, _ what: String, mayResurrect: Bool = false) async throws
    {
        _ = try await store.open()
        for number in 0..<3 {
            guard let stored = try await store.read(number) else { continue }
            let reading = await VersionedEntry.check(stored, is: number)
            #expect(reading == .version(0) || reading == .version(number == 1 ? 1 : 0), "\(what)")
            #expect(number != 2 || mayResurrect, "\(what): resurrected")
        }
        await store.close()
    }

    /// The positions to damage: all written bytes, and a sample of the others.
    private static func positions(_ bytes: [UInt8]) -> [Int] {
        var positions: [Int] = []
        for position in bytes.indices {
            let isWritten = bytes[position] != 0 || position % 4_096 < 80
            if isWritten || position % 1_021 == 0 { positions.append(position) }
        }
        return positions
    }

    @Test func flippedBitsAtEveryByteGiveNoWrongBody() async throws {
        let (store, snapshot) = try await smallStore()
        var tried = 0
        for (path, bytes) in snapshot.sorted(by: { $0.key < $1.key }) {
            for position in Self.positions(bytes) {
                files.restore(snapshot)
                var broken = bytes
                broken[position] ^= 1 << UInt8(position % 8)
                files.replace(path, with: broken)
                try await check(store, "\(path) byte \(position)")
                tried += 1
            }
        }
        #expect(tried > 300)
    }

    @Test func truncationAtEveryByteGivesNoWrongBody() async throws {
        let (store, snapshot) = try await smallStore()
        var tried = 0
        for (path, bytes) in snapshot.sorted(by: { $0.key < $1.key }) {
            for length in Self.positions(bytes) {
                files.restore(snapshot)
                files.replace(path, with: Array(bytes[..<length]))
                try await check(store, "\(path) cut at \(length)", mayResurrect: true)
                tried += 1
            }
        }
        #expect(tried > 300)
    }

    @Test func swappedFilesAreRejected() async throws {
        let store = DiskStore(segments: 6, volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<200 { _ = tier.enqueue(try store.entry(number, version: 4)) }
        await store.close()
        let segments = files.paths.filter { $0.hasSuffix(".seg") }
        try #require(segments.count >= 2)
        let first = try #require(files.bytes(of: segments[0]))
        let second = try #require(files.bytes(of: segments[1]))
        files.replace(segments[0], with: second)
        files.replace(segments[1], with: first)
        let again = try await store.open()
        #expect(again.recovery.damaged == 2)
        for number in 0..<200 {
            let version = try await store.version(number)
            #expect(version == nil || version == 4)
        }
        await store.close()
    }

    @Test func restoredOldGenerationRestoresNoEntry() async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        for number in 100..<200 { _ = tier.enqueue(try store.entry(number, version: 4)) }
        try await tier.flush()
        let old = files.snapshot().filter { $0.key.hasSuffix(".seg") }
        _ = try await tier.remove(store.storeKey(1))
        for number in 200..<1_200 {
            _ = tier.enqueue(try store.entry(number, version: 4))
            if number % 40 == 0 { try await tier.flush() }
        }
        await store.close()
        // The segment of the removed entry is restored from a copy; it was reclaimed long ago.
        let path = try #require(old.keys.min())
        files.replace(path, with: try #require(old[path]))
        _ = try await store.open()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func foreignDirectoryIsAnErrorOrStartsEmpty() async throws {
        let (store, snapshot) = try await smallStore()
        let manifest = store.directory + "/MANIFEST"
        let whole = try #require(snapshot[manifest])
        let stranger = store.directory + "/holiday.jpg"
        var other = whole
        other[4] = 99
        other[0] ^= 1
        for bytes in [other, [], Array(other.prefix(10)), other + [0]] {
            files.restore(snapshot)
            files.replace(stranger, with: [1])
            for path in [manifest, manifest + ".2"] { files.replace(path, with: bytes) }
            store.configuration.foreignDirectory = .error
            await #expect { try await store.open() } throws: {
                ($0 as? CacheError)?.code == .directoryForeign
            }
            #expect(files.bytes(of: manifest) == bytes, "an error changes nothing")
            store.configuration.foreignDirectory = .startEmpty
            let tier = try await store.open()
            #expect(tier.recovery.isFresh && tier.recovery.entries == 0)
            await store.close()
        }
    }

    @Test func foreignFilesAreNeverChanged() async throws {
        let store = DiskStore(volume: .replaced(files))
        try files.makeDirectory(store.directory.parent)
        try files.makeDirectory(store.directory)
        files.replace(store.directory + "/holiday.jpg", with: [1, 2, 3])
        await #expect { try await store.open() } throws: {
            ($0 as? CacheError)?.code == .directoryForeign
        }
        store.configuration.foreignDirectory = .startEmpty
        _ = try await store.open()
        await store.close()
        #expect(files.bytes(of: store.directory + "/holiday.jpg") == [1, 2, 3])
    }

    @Test func unusableDirectoriesAreClearErrors() async throws {
        let store = DiskStore(volume: .replaced(files))
        for plan in [Self.plan { $0.isReadOnly = true }, Self.plan { $0.openFilesMax = 0 }] {
            files.plan = plan
            await #expect { try await store.open() } throws: {
                ($0 as? CacheError)?.code == .directoryUnusable
            }
            files.plan = .init()
        }
        _ = try await store.open()
        await store.close()
    }

    @Test func linksInTheDirectoryAreNotFollowed() async throws {
        let (store, snapshot) = try await smallStore()
        let segments = snapshot.keys.sorted().filter { $0.hasSuffix(".seg") }
        #expect(!segments.isEmpty)
        for path in segments {
            files.addLink(path)
            let tier = try await store.open()
            #expect(tier.recovery.damaged == 1)
            #expect(try await store.version(0, bytes: 40) == nil)
            _ = tier.enqueue(try store.entry(7))
            await store.close()
            #expect(files.bytes(of: path) == snapshot[path], "what the link names is untouched")
        }
    }

    /// The cache was once run by another user, whose files this one may not open until they are given
    /// to it.
    @Test(arguments: [true, false])
    func segmentThatMayNotBeOpenedRestoresNothing(mayUnlink: Bool) async throws {
        let store = DiskStore(volume: .replaced(files))
        let first = try await store.open()
        for number in 0..<110 {
            _ = first.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 10 == 9 { try await first.flush() }
        }
        #expect(try await first.remove(store.storeKey(0)))
        _ = first.enqueue(try store.entry(200, version: 4))
        await store.close()
        let segments = files.paths.filter { $0.hasSuffix(".seg") }
        try #require(segments.count > 2)
        files.plan.forbidden = Set(segments[2...])
        files.plan.keepsForbidden = !mayUnlink
        let tier = try await store.open()
        #expect(tier.recovery.damaged == segments.count - 2 && tier.recovery.readErrors == 1)
        #expect(try await store.version(0) == nil, "its removal is out of reach")
        _ = try await tier.remove(store.storeKey(200))
        _ = try await tier.removeAll(in: .everything)
        _ = tier.enqueue(try store.entry(300, version: 4))
        await store.close()
        files.plan = .init()
        let again = try await store.open()
        #expect(again.recovery.damaged == 0)
        for number in [0, 1, 109, 200] { #expect(try await store.version(number) == nil) }
        #expect(try await store.version(300) == 4)
        await store.close()
    }

    @Test func shardGrowsBesideFilesThatItCannotOpen() async throws {
        let (store, snapshot) = try await smallStore()
        for path in snapshot.keys where path.hasSuffix(".seg") { files.addLink(path) }
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(7))
        try await tier.flush()
        #expect(tier.statistics.writeErrors == 0)
        _ = try await store.reopen()
        #expect(try await store.version(7) == 0)
        await store.close()
    }

    /// The room of such a segment is neither lost nor counted twice.
    @Test func segmentThatCannotBeUnlinkedStaysInUse() async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        for number in 0..<800 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
        }
        try await tier.flush()
        let capacity = store.configuration.capacityBytes
        files.plan.isReadOnly = true
        try await tier.setCapacity(capacity / 2)
        files.plan = .init()
        try await tier.setCapacity(capacity)
        for number in 800..<1_600 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
        }
        try await tier.flush()
        #expect(await tier.shards[0].segmentCount == 8)
        #expect(files.paths.filter { $0.hasSuffix(".seg") }.count == 8)
        #expect(tier.statistics.fileBytes == 8 * (64 << 10))
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
        files.plan = Self.plan { $0.writeError = 1_000 }
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
        files.plan = Self.plan { $0.writeError = 1_000 }
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
        for number in 0..<800 {
            let flags: EntryHead.Flags = number % 8 == 0 ? .pinned : []
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: flags))
            if number % 20 == 0 { try await tier.flush() }
        }
        try await tier.flush()
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
        files.plan = Self.plan { $0.openFilesMax = 0 }
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
        files.plan = Self.plan {
            $0.readError = 1_000
            $0.cold = 1_000
        }
        #expect(try await store.version(1) == nil)
        #expect(tier.statistics.readErrors == 1)
        files.plan = .init()
        #expect(try await store.version(1) == nil)
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func clockJumpNeitherRevivesNorLosesEntries() async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        #expect(try await tier.remove(store.storeKey(1)))
        _ = tier.enqueue(try store.entry(2))
        for now in [store.now + 1_000_000, 0, Int64(UInt32.max) + 10, store.now] {
            store.now = now
            _ = try await store.reopen()
            #expect(try await store.version(1) == nil)
            #expect(try await store.version(2) == 0, "\(now)")
        }
        await store.close()
    }

    /// 255 heads that name records of some 16,000 bytes and of no life of a segment.
    private static func forgedHeads(_ random: inout SeededRandom) -> [UInt8] {
        var bytes = [UInt8](repeating: 0, count: 255 * EntryHead.sizeBytes)
        for start in stride(from: 0, to: bytes.count, by: EntryHead.sizeBytes) {
            var head = EntryHead(
                hash: KeyHash(placement: random.next(), identity: random.next()),
                createdSeconds: UInt32(truncatingIfNeeded: random.next()),
                flags: .init(rawValue: UInt16(truncatingIfNeeded: random.next())),
                keyCount: Int(random.next() % 256),
                tagsCount: Int(random.next() % 256),
                metadataCount: Int(random.next() % 256),
                bodyCount: Int(random.next() >> 33)
            )
            head.codec = .lz4
            head.storedCount = 8_000 + Int(random.next() % 8_000)
            head.sequence = random.next()
            head.headerCRC = UInt32(truncatingIfNeeded: random.next())
            head.bodyCRC = UInt32(truncatingIfNeeded: random.next())
            bytes.withUnsafeMutableBytes { bytes in
                head.encode(into: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
            }
        }
        return bytes
    }

    /// A scan looks for records at every unit of a segment that has stored bodies of an older life.
    @Test(arguments: [true, false])
    func bodyOfForgedHeadsCostsTheShardNothing(isKilled: Bool) async throws {
        let store = DiskStore(segments: 4, volume: .replaced(files))
        let tier = try await store.open()
        var random = SeededRandom(seed: 1)
        for number in 0..<40 {
            let entry = try store.entry(number, body: Self.forgedHeads(&random))
            #expect(tier.enqueue(entry) == .stored)
            try await tier.flush()
        }
        #expect(tier.statistics.segmentsReclaimed > 4, "every segment has an older life")
        // The last ones lie at the front of a segment.
        for number in 100..<106 {
            _ = tier.enqueue(try store.entry(number))
            try await tier.flush()
        }
        let killed = files.copy(afterPowerCut: false)
        await store.close()
        if isKilled { store.volume = .replaced(killed) }
        let again = try await store.open()
        #expect(again.recovery.readErrors == 0)
        for number in 100..<106 { #expect(try await store.version(number) == 0) }
        await store.close()
    }

    private static func plan(
        _ change: (inout FaultyFileSystem.Plan) -> Void
    ) -> FaultyFileSystem.Plan {
        var plan = FaultyFileSystem.Plan()
        change(&plan)
        return plan
    }
}

extension DiskShard {
    fileprivate var openSegmentPath: String? { writer.segment.map { segmentPath($0.slot) } }
}

extension String {
    fileprivate var parent: String { lastIndex(of: "/").map { String(self[..<$0]) } ?? self }
}
