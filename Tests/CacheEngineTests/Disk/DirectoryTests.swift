import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// The cache opens its own directory whatever happened to the manifest, and leaves foreign
/// directories unchanged.
@Suite struct DirectoryTests {
    private static let names = ["MANIFEST", "MANIFEST.2"]

    private func stored() async throws -> DiskStore {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        await store.close()
        return store
    }

    private func url(_ store: DiskStore, _ name: String) -> URL {
        URL(filePath: store.directory + "/" + name)
    }

    /// Damaged versions of a manifest; `nil` stands for a missing file.
    private static func broken(_ bytes: Data) -> [Data?] {
        var flipped = bytes
        flipped[30] ^= 1
        var later = bytes
        later[4] = 99
        return [flipped, later, Data(), bytes.prefix(10), bytes + [0], nil]
    }

    private func put(_ bytes: Data?, _ store: DiskStore, _ name: String) throws {
        try? FileManager.default.removeItem(at: url(store, name))
        try bytes?.write(to: url(store, name))
    }

    @Test(arguments: names)
    func oneDamagedManifestLosesNothing(name: String) async throws {
        let store = try await stored()
        let whole = try Data(contentsOf: url(store, name))
        for broken in Self.broken(whole) {
            try put(broken, store, name)
            let tier = try await store.open()
            #expect(try await store.version(1) == 0)
            #expect(tier.recovery.notes.count == 1)
            await store.close()
            #expect(try Data(contentsOf: url(store, name)) == whole, "mended")
            #expect(try await store.open().recovery.notes.isEmpty)
            await store.close()
        }
    }

    @Test func twoDamagedManifestsBeginAnew() async throws {
        let store = try await stored()
        let whole = try Data(contentsOf: url(store, "MANIFEST"))
        for broken in Self.broken(whole) {
            for name in Self.names { try put(broken, store, name) }
            var tier = try await store.open()
            #expect(tier.recovery.isFresh && tier.recovery.notes.count == 1)
            #expect(try await store.version(1) == nil)
            _ = tier.enqueue(try store.entry(1))
            tier = try await store.reopen()
            #expect(!tier.recovery.isFresh && tier.recovery.notes.isEmpty)
            #expect(try await store.version(1) == 0)
            await store.close()
        }
    }

    @Test func nothingIsWrittenToAForeignDirectory() async throws {
        let store = DiskStore()
        let folder = URL(filePath: store.directory)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
        try Data("mine".utf8).write(to: url(store, "holiday.jpg"))
        for manifest in [nil, Data("something else".utf8)] {
            try put(manifest, store, "MANIFEST")
            let before = try FileManager.default.contentsOfDirectory(atPath: store.directory)
            await #expect { try await store.open() } throws: {
                ($0 as? CacheError)?.code == .directoryForeign
            }
            let after = try FileManager.default.contentsOfDirectory(atPath: store.directory)
            #expect(before.sorted() == after.sorted())
        }
    }

    /// The names end like those of a cache.
    @Test func newLayoutSparesFilesOfOthers() async throws {
        let store = try await stored()
        let others = ["film.seg", "000001.seg", "0000x.seg", "letter.body", "00FF.body"]
        for name in others { try Data("mine".utf8).write(to: url(store, "s00/" + name)) }
        try put(Data(repeating: 1, count: 9), store, "s00/00ff00ff00ff00ff.body")
        for name in Self.names { try put(nil, store, name) }
        let tier = try await store.open()
        #expect(tier.recovery.isFresh)
        #expect(try await store.version(1) == nil)
        await store.close()
        let left = try FileManager.default.contentsOfDirectory(atPath: store.directory + "/s00")
        #expect(left.filter { !others.contains($0) && $0 != "00000.seg" } == [])
        #expect(Set(left).isSuperset(of: others))
        for name in others {
            #expect(try Data(contentsOf: url(store, "s00/" + name)) == Data("mine".utf8))
        }
    }

    @Test func onlyTheLastComponentOfThePathIsMade() async throws {
        let store = DiskStore()
        let parent = store.directory + "-mount"
        store.configuration.directory = parent + "/cache"
        await #expect { try await store.open() } throws: {
            ($0 as? CacheError)?.code == .directoryUnusable
        }
        #expect(!FileManager.default.fileExists(atPath: parent))
        try FileManager.default.createDirectory(
            atPath: parent,
            withIntermediateDirectories: false
        )
        defer { try? FileManager.default.removeItem(atPath: parent) }
        _ = try await store.open()
        await store.close()
    }

    /// The root of a file system contains `lost+found`.
    @Test func rootOfAFileSystemIsNotForeign() async throws {
        let store = DiskStore()
        try FileManager.default.createDirectory(
            atPath: store.directory + "/lost+found",
            withIntermediateDirectories: true
        )
        _ = try await store.open()
        await store.close()
    }

    /// The texts of a tier's faults.
    private final class Faults: Sendable {
        private let noted = Mutex<[(detail: String, isTold: Bool)]>([])
        var details: [String] { noted.withLock { $0.map { $0.detail } } }
        var told: [String] { noted.withLock { $0.filter { $0.isTold }.map { $0.detail } } }

        func open(_ store: DiskStore) async throws -> DiskTier {
            let tier = try await DiskTier.open(
                store.configuration,
                clock: FixedClock(nowSeconds: store.now),
                fileSystem: store.volume,
                onFault: { [self] error, isTold in
                    noted.withLock { $0.append((error.detail, isTold)) }
                }
            )
            store.tier = tier
            return tier
        }
    }

    @Test func directoryThatWasDeletedIsNamed() async throws {
        let store = DiskStore()
        let faults = Faults()
        let tier = try await faults.open(store)
        _ = tier.enqueue(try store.entry(0))
        try await tier.flush()
        try FileManager.default.removeItem(atPath: store.directory)
        let gone = "\(store.directory) was deleted or replaced"
        let error = await #expect(throws: CacheError.self) { try await tier.flush() }
        #expect(error?.detail.hasPrefix(gone) == true)
        #expect(faults.details == [gone + "; entries are no longer kept on disk"])
        await store.close()
    }

    /// An event of the same minute tells another fault; of the two shards, one tells the end.
    @Test func directoryThatWasDeletedIsToldSoonAfterAnotherFault() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(shards: 2, volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let faults = Faults()
        let tier = try await faults.open(store)
        files.plan.writeError = 1_000
        _ = tier.enqueue(try store.entry(0))
        await #expect(throws: CacheError.self) { try await tier.flush() }
        files.plan = .init()
        files.erase(store.directory)
        await #expect(throws: CacheError.self) { try await tier.flush() }
        #expect(faults.told.count == 2)
        #expect(faults.told.last?.contains("was deleted or replaced") == true)
        #expect(tier.statistics.shardsFailed == 2)
        await store.close()
    }

    /// The files that are open are written on, until the next segment is made.
    @Test func writesOfADeletedDirectoryDoNotBlameTheCapacity() async throws {
        let store = DiskStore()
        let faults = Faults()
        let tier = try await faults.open(store)
        try FileManager.default.removeItem(atPath: store.directory)
        for number in 0..<4_000 {
            if tier.enqueue(try store.entry(number)) == .stored { continue }
            for shard in tier.shards { _ = await shard.drainAll() }
        }
        for shard in tier.shards { _ = await shard.drainAll() }
        let gone = "\(store.directory) was deleted or replaced"
        #expect(faults.details.count > 1)
        #expect(faults.details.allSatisfy { $0.contains(gone) })
        await store.close()
    }

    @Test func directoryMadeAgainUnderTheTierIsNotTakenForItsOwn() async throws {
        let store = DiskStore()
        store.configuration.bootID = "boot"
        let first = try await store.open()
        _ = first.enqueue(try store.entry(1))
        try await first.flush()
        try FileManager.default.removeItem(atPath: store.directory)
        let other = DiskStore()
        other.configuration = store.configuration
        let second = try await other.open()
        _ = second.enqueue(try other.entry(1, version: 4))
        try await second.flush()
        _ = first.enqueue(try store.entry(2))
        await #expect(throws: CacheError.self) { try await first.flush() }
        await #expect(throws: CacheError.self) { try await first.remove(store.storeKey(1)) }
        await #expect(throws: CacheError.self) { try await first.removeAll(in: .everything) }
        #expect(first.enqueue(try store.entry(3)) != .stored)
        try await second.keep(bookmark: [1])
        await #expect(throws: CacheError.self) { try await first.keep(bookmark: [2]) }
        #expect(await second.bookmark() == [1])
        await store.close()
        #expect(try await other.version(1) == 4)
        await other.close()
        try? FileManager.default.removeItem(atPath: store.directory)
    }

    /// A copy of the directory, with the same names, belongs to another cache.
    @Test(arguments: [false, true])
    func bodiesInAReplacedDirectoryStay(isPurged: Bool) async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(segmentBytes: 256 << 10, segments: 64, volume: .replaced(files))
        store.configuration.ioThreads = 1
        let tier = try await store.open()
        for number in 0..<3 { try await LargeBodyTests.write(number, in: store) }
        try await tier.flush()
        let bodies = files.paths.filter { $0.hasSuffix(".body") }
        #expect(bodies.count == 3)
        let lock = store.directory + "/" + DiskDirectory.lockName
        files.erase(lock)
        files.replace(lock, with: [])
        if isPurged {
            await #expect(throws: CacheError.self) { try await tier.removeAll(in: .everything) }
        } else {
            #expect(tier.enqueue(try store.entry(0, version: 1)) == .stored)
            await #expect(throws: CacheError.self) { try await tier.flush() }
        }
        #expect(tier.shards[0].state.withLock { $0.bodies.count } == (isPurged ? 0 : 2))
        // The pool's only thread erases a doomed file before it does this.
        #expect(await tier.shards[0].pool.run { true } == true)
        #expect(files.paths.filter { $0.hasSuffix(".body") } == bodies)
        await store.close()
    }

    /// Another cache may use the directory by then.
    @Test func bodyReadBeyondTheEndOfItsTierGoesAtTheNextOpening() async throws {
        let files = FaultyFileSystem(seed: 1)
        let store = DiskStore(segmentBytes: 256 << 10, segments: 64, volume: .replaced(files))
        store.configuration.ioThreads = 1
        let tier = try await store.open()
        try await LargeBodyTests.write(0, in: store)
        try await tier.flush()
        var reader = try await store.read(0)?.detachedBody
        #expect(try await reader?.read(0..<1).count == 1)
        #expect(tier.enqueue(try store.entry(0, version: 1)) == .stored)
        let pool = tier.shards[0].pool
        await store.close()
        reader = nil
        #expect(await pool.run { true } == true)
        #expect(files.paths.contains { $0.hasSuffix(".body") })
        _ = try await store.open()
        #expect(files.paths.allSatisfy { !$0.hasSuffix(".body") })
        #expect(try await store.version(0) == 1)
        await store.close()
    }
}
