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
            let error = await #expect(throws: CacheError.self) { try await store.open() }
            #expect(error?.code == .directoryUnusable)
            let saysHow = error?.detail.hasSuffix("; raise the limit with ulimit -n")
            #expect(saysHow == (plan.openFilesMax == 0))
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

extension String {
    fileprivate var parent: String { lastIndex(of: "/").map { String(self[..<$0]) } ?? self }
}
