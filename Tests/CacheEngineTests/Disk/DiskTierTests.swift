import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

@Suite struct DiskTierTests {
    @Test func entryLargerThanTheQueueWaitsAloneInIt() async throws {
        let store = DiskStore()
        store.configuration.queueBytesMax = 8 << 10
        store.configuration.flushMilliseconds = 60_000
        let tier = try await store.open()
        #expect(tier.enqueue(try store.entry(1, bytes: 20_000)) == .stored)
        #expect(tier.enqueue(try store.entry(2)) == .refused(.queueFull))
        try await tier.flush()
        #expect(tier.enqueue(try store.entry(2)) == .stored)
        #expect(tier.enqueue(try store.entry(3, bytes: 20_000)) == .refused(.queueFull))
        _ = try await store.reopen()
        #expect(try await store.version(1, bytes: 20_000) == 0)
        #expect(try await store.version(2) == 0)
        await store.close()
    }

    @Test("one entry that is larger than a queue waits in each only while few wait in all")
    func queuesOfAllShardsHoldFewEntriesThatExceedThem() async throws {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 32, shards: 8)
        store.configuration.queueBytesMax = 64 << 10
        store.configuration.batchBytes = 16 << 20
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        var outcomes: [Int: StoreOutcome] = [:]
        var queuedIn: Set<ObjectIdentifier> = []
        for number in 0..<1_000 where outcomes.count < 8 {
            let entry = try store.entry(number, bytes: 200_000)
            guard queuedIn.insert(ObjectIdentifier(tier.shard(entry.head.hash))).inserted else {
                continue
            }
            outcomes[number] = tier.enqueue(entry)
        }
        // All queues together hold 512 KiB.
        let stored = outcomes.filter { $0.value == .stored }.keys
        #expect(stored.count == 2)
        #expect(outcomes.values.count { $0 == .refused(.queueFull) } == 6)
        for number in stored { #expect(try await store.version(number, bytes: 200_000) == 0) }
        try await tier.flush()
        for number in outcomes.keys where !stored.contains(number) {
            #expect(tier.enqueue(try store.entry(number, bytes: 200_000)) == .stored)
            tier.enqueueRemoval(try store.entry(number).head.hash)
        }
        await store.close()
    }

    /// The device takes nothing meanwhile, so the versions pass through the queue unwritten.
    @Test func replacedVersionsLeaveNothingInTheQueue() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        let shard = tier.shards[0]
        for version in 0..<10_000 {
            _ = tier.enqueue(try store.entry(version % 10, version: version, bytes: 40))
        }
        for number in 0..<10 {
            let identity = try store.storeKey(number).hash.identity
            let place = shard.state.withLock { $0.index.place(of: identity) }
            #expect(place.isQueued && place.queueNode < 64, "\(place.queueNode)")
        }
        try await tier.flush()
        for number in 0..<10 { #expect(try await store.version(number) == 9_990 + number) }
        await store.close()
    }

    /// A body that shrinks to a few kilobytes takes as long to decompress as one that does not.
    @Test func largeRecordIsNotDecompressedOnTheCallersThread() async throws {
        let store = DiskStore(segmentBytes: 4 << 20, segments: 8)
        let tier = try await store.open()
        let body = [UInt8](repeating: 7, count: 300_000)
        for (number, body) in [body, Array(body[..<200_000])].enumerated() {
            let entry = try store.entry(number, body: body)
            #expect(tier.enqueue(entry) == .stored)
            try await tier.flush()
            let result = entry.withKey { tier.read(entry.head.hash, key: $0) }
            switch result {
            case .mustWait: #expect(number == 0)
            case .hit: #expect(number == 1)
            case .miss: Issue.record("not found")
            }
            let read = try #require(try await store.read(number))
            #expect(read.entry.bodyCount == body.count)
        }
        await store.close()
    }

    @Test func queuedEntryIsReadableAtOnceAndStillAfterItIsWritten() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        #expect(tier.enqueue(try store.entry(1, version: 7)) == .stored)
        #expect(try await store.version(1) == 7)
        #expect(tier.statistics.hitsQueued == 1)
        try await tier.flush()
        #expect(try await store.version(1) == 7)
        #expect(tier.statistics.hitsCached + tier.statistics.hitsWaited == 1)
        await store.close()
    }

    @Test func entriesSurviveACleanReopenWithoutScanning() async throws {
        let store = DiskStore(shards: 2)
        let tier = try await store.open()
        for number in 0..<100 { #expect(tier.enqueue(try store.entry(number)) == .stored) }
        let again = try await store.reopen()
        #expect(again.recovery.entries == 100)
        #expect(again.recovery.torn == 0)
        #expect(!again.recovery.isFresh)
        for number in 0..<100 { #expect(try await store.version(number) == 0) }
        await store.close()
    }

    @Test func flushedEntriesSurviveAnOpeningWithoutClose() async throws {
        let store = DiskStore()
        try await store.open()
        for number in 0..<100 { _ = store.tier?.enqueue(try store.entry(number)) }
        try await store.tier?.flush()
        store.tier = nil
        let again = try await store.openWhenFree()
        #expect(again.recovery.entries == 100)
        #expect(again.recovery.torn == 1)
        for number in 0..<100 { #expect(try await store.version(number) == 0) }
        await store.close()
    }

    @Test func replacementWinsBeforeAndAfterReopening() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for version in 0..<5 {
            _ = tier.enqueue(try store.entry(1, version: version))
            if version % 2 == 0 { try await tier.flush() }
            #expect(try await store.version(1) == version)
        }
        _ = try await store.reopen()
        #expect(try await store.version(1) == 4)
        await store.close()
    }

    @Test func removedEntryStaysRemoved() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        #expect(try await tier.remove(store.storeKey(1)))
        #expect(try await !tier.remove(store.storeKey(1)))
        #expect(try await store.version(1) == nil)
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func tagPurgeKillsOlderEntriesOnlyAndSurvivesReopening() async throws {
        let store = DiskStore(shards: 2)
        let tier = try await store.open()
        for number in 0..<20 {
            let tags = number % 2 == 0 ? ["even", "all"] : ["all"]
            _ = tier.enqueue(try store.entry(number, tags: tags))
            if number == 10 { try await tier.flush() }
        }
        _ = try await tier.removeAll(in: .tag("even"))
        _ = tier.enqueue(try store.entry(4, version: 1, tags: ["even"]))
        for reopened in [false, true] {
            if reopened { _ = try await store.reopen() }
            for number in 0..<20 {
                let expected = number == 4 ? 1 : (number % 2 == 0 ? nil : 0)
                #expect(try await store.version(number) == expected, "\(number)")
            }
        }
        await store.close()
    }

    @Test(arguments: [
        RemovalScope.everything, .storageClass(.pinned), .storedAfter(unixSeconds: 2_000_000),
        .storedBefore(unixSeconds: 2_000_000),
    ])
    func purgeCoversWhatItSays(scope: RemovalScope) async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        _ = tier.enqueue(try store.entry(2, flags: .pinned))
        try await tier.flush()
        store.now = 3_000_000
        _ = tier.enqueue(try store.entry(3))
        _ = tier.enqueue(try store.entry(4, flags: .pinned))
        _ = try await tier.removeAll(in: scope)
        let dead: Set<Int> =
            switch scope {
            case .everything: [1, 2, 3, 4]
            case .storageClass: [2, 4]
            case .storedAfter: [3, 4]
            default: [1, 2]
            }
        for reopened in [false, true] {
            if reopened { _ = try await store.reopen() }
            for number in 1...4 {
                let isDead = try await store.version(number) == nil
                #expect(isDead == dead.contains(number), "\(number)")
            }
        }
        await store.close()
    }

    /// A purge of a class looks at one table of the index at a time.
    @Test func purgeOfAClassSparesWhatIsStoredWhileItRuns() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        let shard = tier.shards[0]
        func put(_ number: Int) throws {
            #expect(tier.enqueue(try store.entry(number, flags: .pinned)) == .stored)
        }
        func begin() throws -> UInt64 {
            try #require(shard.state.withLock { $0.beginPurge(.storageClass(.pinned)) })
        }
        func drop(before sequence: UInt64) -> Int {
            DiskIndex.tableNumbers.reduce(0) { sum, table in
                sum
                    + shard.state.withLock {
                        $0.dropPlaces(of: .pinned, inTable: table, before: sequence).entries
                    }
            }
        }
        try put(1)
        try await tier.flush()
        try put(2)
        let first = try begin()
        try put(3)
        #expect(drop(before: first) == 2)
        #expect(try await store.version(3) == 0)
        let body = DiskStore.body(5, version: 0, bytes: 40_000)
        #expect(tier.enqueue(try store.entry(5, flags: .pinned, body: body)) == .stored)
        try await tier.flush()
        let second = try begin()
        try put(4)
        try await tier.flush()
        #expect(drop(before: second) == 1, "their segment has a newer record, a body has a number")
        #expect(shard.state.withLock { $0.bodies.isEmpty })
        for isReopened in [false, true] {
            if isReopened { _ = try await store.reopen() }
            for number in 1...3 { #expect(try await store.version(number) == nil, "\(number)") }
            #expect(try await store.version(4) == 0)
            #expect(try await store.version(5, bytes: 40_000) == nil)
        }
        await store.close()
    }

    @Test func purgeOfEverythingCountsWhatItRemoves() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await LargeBodyTests.write(2, bytes: 40_000, in: store)
        try await tier.flush()
        let entry = try store.entry(3)
        _ = tier.enqueue(entry)
        let identities = try [1, 2].map { try store.storeKey($0).hash.identity }
        let written = tier.shards[0].state.withLock { state in
            identities.reduce(0) { sum, identity in
                sum + state.index.place(of: identity).recordBytes
                    + (state.bodies[identity]?.occupiedBytes ?? 0)
            }
        }
        let removed = try await tier.removeAll(in: .everything)
        #expect(removed.entries == 3 && removed.bytes == written + entry.sizeBytes)
        #expect(await tier.usage().entries == 0)
        #if ENGINE_CHECKS
            await tier.checkInvariants()
        #endif
        _ = try await store.reopen()
        for number in 1...3 { #expect(try await store.version(number) == nil) }
        await store.close()
    }

    /// They fill segments before the purge has freed the room of older ones.
    @Test func purgeOfEverythingSparesWhatIsStoredWhileItRuns() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        for number in 0..<100 { _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900)) }
        try await tier.flush()
        let newer = try (200..<350).map { try store.entry($0, version: 4, bytes: 900) }
        _ = try await tier.removeAll(in: .everything) {
            for entry in newer { #expect(tier.enqueue(entry) == .stored) }
        }
        #expect(tier.statistics.segmentsReclaimed > 0)
        #expect(try await store.version(1) == nil)
        for number in 200..<350 { #expect(try await store.version(number) == 4, "\(number)") }
        await store.close()
    }

    @Test func sessionEntriesEndWithTheSession() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1, version: 1))
        try await tier.flush()
        _ = tier.enqueue(try store.entry(1, version: 2, flags: .session))
        _ = tier.enqueue(try store.entry(2))
        #expect(try await store.version(1) == 2)
        for _ in 0..<2 {
            _ = try await store.reopen()
            #expect(try await store.version(1) == nil)
            #expect(try await store.version(2) == 0)
        }
        await store.close()
    }

    @Test func keysOfOneHashAreToldApart() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        let hash = KeyHash(placement: 7, identity: 7)
        func key(_ name: String) -> StoreKey { StoreKey(bytes: Array(name.utf8), hash: hash) }
        let blueprint = EntryBlueprint(
            key: RequestKey(bytes: key("first").bytes, hash: hash),
            metadata: [],
            createdSeconds: store.now
        )
        #expect(tier.enqueue(blueprint.makeEntry(body: [ByteChunk("1")], sequence: 0)) == .stored)
        for isWritten in [false, true] {
            if isWritten { try await tier.flush() }
            #expect(try await tier.entry(for: key("first"))?.entry.body.text == "1")
            #expect(try await tier.entry(for: key("other")) == nil)
        }
        await store.close()
    }

    @Test func memoryOnlyEntryLeavesNoByteAndRemovesTheOlderCopy() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        let outcome = tier.enqueue(try store.entry(1, version: 1, flags: .memoryOnly))
        #expect(outcome == .refused(.notAdmitted))
        #expect(try await store.version(1) == nil)
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func fullQueueRefusesAndTheOldEntryIsGone() async throws {
        let store = DiskStore(segmentBytes: 1 << 20)
        store.configuration.queueBytesMax = 2_000
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        _ = tier.enqueue(try store.entry(2, bytes: 1_500))
        #expect(tier.enqueue(try store.entry(1, version: 1)) == .refused(.queueFull))
        #expect(tier.statistics.queueOverflows == 1)
        #expect(try await store.version(1) == nil)
        _ = try await store.reopen()
        #expect(try await store.version(1) == nil)
        #expect(try await store.version(2, bytes: 1_500) == 0)
        await store.close()
    }

    @Test func oldestEntriesGoFirstAndTheCapacityHolds() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        let count = 3_000
        for number in 0..<count {
            _ = tier.enqueue(try store.entry(number, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
            if number % 200 == 0 {
                #expect(store.fileBytes <= store.configuration.capacityBytes)
            }
        }
        try await tier.flush()
        #expect(try await store.version(count - 1) == 0)
        #expect(try await store.version(0) == nil)
        #expect(tier.statistics.segmentsReclaimed > 10)
        let held = await tier.usage().entries
        let again = try await store.reopen()
        #expect(again.recovery.entries >= held)
        await store.close()
    }

    @Test func entriesInUseOutliveTheirSegment() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<2_000 {
            _ = tier.enqueue(try store.entry(number, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
            if number % 5 == 0 { for _ in 0..<2 { #expect(try await store.version(0) == 0) } }
        }
        #expect(tier.statistics.reinsertions > 0)
        _ = try await store.reopen()
        #expect(try await store.version(0) == 0)
        await store.close()
    }

    @Test func purgedEntryIsNotWrittenAgainHoweverOftenItIsAskedFor() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(0, bytes: 900, tags: ["t"]))
        try await tier.flush()
        // Only hits count as uses: these make the record worth writing again.
        for _ in 0..<3 { #expect(try await store.version(0) == 0) }
        _ = try await tier.removeAll(in: .tag("t"))
        for number in 1..<2_000 {
            _ = tier.enqueue(try store.entry(number, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
            if number % 5 == 0 { #expect(try await store.version(0) == nil, "\(number)") }
        }
        #expect(tier.statistics.segmentsReclaimed > 0)
        _ = try await store.reopen()
        #expect(try await store.version(0) == nil)
        await store.close()
    }

    /// The flush in between makes the lane's only wake-up come too early.
    @Test func queueIsWrittenAfterAWakeUpThatCameTooEarly() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 20
        let tier = try await store.open()
        for number in 0..<20 {
            _ = tier.enqueue(try store.entry(number))
            try await tier.flush()
        }
        _ = tier.enqueue(try store.entry(20))
        #expect(await eventually { tier.statistics.queuedBytes == 0 })
        await store.close()
    }

    @Test func nothingIsTakenOrWrittenOnceItIsClosed() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        #expect(tier.enqueue(try store.entry(1)) == .stored)
        await tier.close()
        #expect(tier.enqueue(try store.entry(2)) == .refused(.closed))
        await #expect {
            _ = try await tier.remove(store.storeKey(1))
        } throws: {
            ($0 as? CacheError)?.code == .shutDown
        }
        _ = try await store.reopen()
        #expect(try await store.version(1) == 0)
        await store.close()
    }

    @Test func pinnedEntriesOutliveTheirSegment() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<20 {
            _ = tier.enqueue(try store.entry(number, bytes: 900, flags: [.pinned]))
        }
        for number in 20..<3_000 {
            _ = tier.enqueue(try store.entry(number, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
        }
        #expect(tier.statistics.segmentsReclaimed > 10)
        #expect(try await store.version(20) == nil)
        for number in 0..<20 { #expect(try await store.version(number) == 0) }
        _ = try await store.reopen()
        for number in 0..<20 { #expect(try await store.version(number) == 0) }
        await store.close()
    }

    @Test func pinnedEntriesBeyondTheirShareMakeWay() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<3_000 {
            _ = tier.enqueue(try store.entry(number, bytes: 900, flags: [.pinned]))
            if number % 20 == 0 { try await tier.flush() }
        }
        try await tier.flush()
        #expect(try await store.version(2_999) == 0)
        #expect(store.fileBytes <= store.configuration.capacityBytes)
        await store.close()
    }

    /// Three quarters of a segment may be kept: half because it is pinned, a quarter as it is used.
    @Test(arguments: [900, 12_000])
    func recordThatWaitsHasRoomBesideWhatAReclaimKeeps(bytes: Int) async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<400 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: 900, flags: [.pinned]))
        }
        try await tier.flush()
        for number in 0..<400 { for _ in 0..<2 { _ = try await store.version(number) } }
        for number in 400..<460 {
            #expect(tier.enqueue(try store.entry(number, version: 4, bytes: bytes)) == .stored)
            try await tier.flush()
            #expect(try await store.version(number) == 4, "\(number)")
        }
        #expect(tier.statistics.reinsertions > 0 && tier.statistics.writeErrors == 0)
        await store.close()
    }

    @Test func queueIsWrittenWhenItsTimeHasComeWithoutAnyCall() async throws {
        let store = DiskStore()
        store.configuration.flushMilliseconds = 1
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        #expect(await eventually { tier.statistics.queuedBytes == 0 })
        #expect(try await store.version(1) == 0)
        await store.close()
    }

    @Test func tokenIsCurrentUntilItsKeyChanges() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        let hash = try store.storeKey(1).hash
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        let token = try #require(tier.currentToken(hash))
        #expect(tier.isCurrent(token, hash))
        _ = tier.enqueue(try store.entry(1, version: 1))
        #expect(!tier.isCurrent(token, hash))
        let newer = try #require(tier.currentToken(hash))
        _ = try await tier.removeAll(in: .tag("any"))
        #expect(!tier.isCurrent(newer, hash))
        tier.enqueueRemoval(hash)
        #expect(tier.currentToken(hash) == nil && !tier.contains(hash))
        await store.close()
    }

    @Test func incompressibleBodiesRoundTrip() async throws {
        let store = DiskStore(segmentBytes: 1 << 20)
        let tier = try await store.open()
        var random = SeededRandom(seed: 1)
        for size in [0, 1, 63, 64, 1_000, 16_384, 20_000, 250_000] {
            let body = (0..<size).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            _ = tier.enqueue(try store.entry(size, body: body))
            try await tier.flush()
            #expect(try await store.read(size)?.entry.body.array == body, "\(size)")
        }
        await store.close()
    }

    @Test func secondOpenerIsRefused() async throws {
        let store = DiskStore()
        _ = try await store.open()
        let configuration = store.configuration
        await #expect {
            _ = try await DiskTier.open(configuration)
        } throws: {
            ($0 as? CacheError)?.code == .directoryInUse
        }
        await store.close()
    }

    /// A child process between fork and exec shares the open lock file.
    @Test func closedDirectoryIsFreeThoughAnotherHoldsItsLockFileOpen() async throws {
        let store = DiskStore()
        try await store.open()
        let shared = store.copiesOfOpenFiles(named: DiskDirectory.lockName)
        defer { for copy in shared { close(copy) } }
        #if os(Linux)
            #expect(!shared.isEmpty)
        #endif
        _ = try await store.reopen()
        await store.close()
    }
}
