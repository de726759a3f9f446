import CacheTestSupport
import Foundation
import Testing

@testable import CacheEngine

/// What happens to files behind the tier's back: the outcome is a clear error or a smaller cache.
@Suite struct DiskFaultTests {
    let files = FaultyFileSystem(seed: 1)

    /// A closed store of a few small entries, one of them removed, and all its files.
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

    /// Opens what is there and checks that every answer is one that was given once, and that what
    /// was removed stays removed unless `mayResurrect`.
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

    /// Positions worth breaking one by one: what is written, and a sample of what is not.
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
                // A damaged tombstone is a lost removal: no copy of it is kept elsewhere.
                try await check(store, "\(path) byte \(position)", mayResurrect: true)
                tried += 1
            }
        }
        #expect(tried > 300)
    }

    @Test func truncationAtEveryByteGivesNoWrongBody() async throws {
        let (store, snapshot) = try await smallStore()
        for (path, bytes) in snapshot.sorted(by: { $0.key < $1.key }) {
            for length in Self.positions(bytes) {
                files.restore(snapshot)
                files.replace(path, with: Array(bytes[..<length]))
                try await check(store, "\(path) cut at \(length)", mayResurrect: true)
            }
        }
    }

    @Test func swappedFilesAreNotBelieved() async throws {
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

    @Test func restoredOldGenerationResurrectsNothing() async throws {
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
        // The segment with the removed entry comes back from a copy; it is long reclaimed.
        let path = try #require(old.keys.min())
        files.replace(path, with: try #require(old[path]))
        _ = try await store.open()
        #expect(try await store.version(1) == nil)
        await store.close()
    }

    @Test func foreignDirectoryIsAnErrorOrStartsEmpty() async throws {
        let (store, snapshot) = try await smallStore()
        let manifest = store.directory + "/MANIFEST"
        var other = try #require(snapshot[manifest])
        other[4] = 99
        for bytes in [other, [], Array(other.prefix(10)), other + [0]] {
            files.restore(snapshot)
            files.replace(manifest, with: bytes)
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

    @Test func strangersFilesAreNeverTouched() async throws {
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
        for path in snapshot.keys.sorted() where path.hasSuffix(".seg") {
            files.addLink(path)
            let tier = try await store.open()
            #expect(tier.recovery.damaged == 1)
            #expect(try await store.version(0, bytes: 40) == nil)
            _ = tier.enqueue(try store.entry(7))
            await store.close()
            #expect(files.bytes(of: path) == snapshot[path], "what the link names is untouched")
        }
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

    @Test func clockThatJumpsNeitherRevivesNorLosesWhatHasNoExpiry() async throws {
        let store = DiskStore(volume: .replaced(files))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        _ = tier.enqueue(try store.entry(2, expires: UInt32(store.now) + 100))
        #expect(try await tier.remove(store.storeKey(1)))
        _ = tier.enqueue(try store.entry(3))
        for now in [store.now + 1_000_000, 0, Int64(UInt32.max) + 10, store.now] {
            store.now = now
            _ = try await store.reopen()
            #expect(try await store.version(1) == nil)
            #expect(try await (store.version(2) == 0) == (now < 1_000_100), "\(now)")
            #expect(try await (store.version(3) == 0) == (now <= Int64(UInt32.max)), "\(now)")
        }
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
