import CacheTestSupport
import HTTPCaching
import Testing

@testable import CacheEngine

/// A purge of many entries that fails in a closed shard holds in every other one.
@Suite struct ClosedShardPurgeTests {
    /// How the first shard was closed.
    enum End: CaseIterable, Sendable {
        /// It noticed that its directory is gone; the second one did not.
        case lostDirectory
        case closed
    }

    private let files = FaultyFileSystem(seed: 1)

    /// A tier of two shards, whose second one alone serves what it has.
    private func store(endOfFirst end: End) async throws -> (DiskStore, numbers: [Int]) {
        let store = DiskStore(shards: 2, volume: .replaced(files))
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        let numbers = try tier.shards.compactMap { shard in
            try (0..<100).first { try tier.shard(store.storeKey($0).hash) === shard }
        }
        try #require(numbers.count == 2)
        for number in numbers {
            #expect(tier.enqueue(try store.entry(number, tags: ["t"])) == .stored)
        }
        try await tier.flush()
        switch end {
        case .lostDirectory:
            files.erase(store.directory)
            let key = try store.storeKey(numbers[0])
            await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        case .closed: await tier.shards[0].close()
        }
        #expect(try await store.version(numbers[1]) == 0, "it serves on")
        return (store, numbers)
    }

    private static let scopes: [RemovalScope] = [
        .everything, .tag("t"), .storageClass(.permanent), .storedAfter(unixSeconds: 0),
    ]

    @Test(arguments: End.allCases, scopes)
    func purgeReachesTheShardsBehindAClosedOne(end: End, scope: RemovalScope) async throws {
        let (store, numbers) = try await store(endOfFirst: end)
        let tier = try #require(store.tier)
        await #expect(throws: CacheError.self) { try await tier.removeAll(in: scope) }
        for number in numbers { #expect(try await store.version(number) == nil, "\(number)") }
        await store.close()
    }

    /// The caller learns of a failure, and what was purged is in the log of the shard that works.
    @Test(arguments: [RemovalScope.everything, .tag("t")])
    func purgeThatFailsInOneShardIsWrittenInTheOthers(scope: RemovalScope) async throws {
        let (store, numbers) = try await store(endOfFirst: .closed)
        let tier = try #require(store.tier)
        await #expect(throws: CacheError.self) { try await tier.removeAll(in: scope) }
        let killed = DiskStore(volume: .replaced(files.copy(afterPowerCut: false)))
        killed.configuration = store.configuration
        _ = try await killed.open()
        #expect(try await killed.version(numbers[0]) == 0)
        #expect(try await killed.version(numbers[1]) == nil)
        await killed.close()
        await store.close()
    }

    // MARK: A whole cache

    /// A cache over a directory of two shards, with a response in each, and their URLs.
    private func stage() async throws -> (Stage, urls: [String]) {
        let layout = DiskStore(shards: 2, volume: .replaced(files))
        layout.configuration.directory = "/cache"
        _ = try await layout.open()
        await layout.close()
        let fields: HeaderFields = ["Cache-Control": "max-age=600", "Cache-Tag": "t"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "old")) {
            $0.memory = .disabled
            $0.backing = .disk(path: "/cache", capacity: .megabytes(4))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.flushMilliseconds = 1_000_000
        }
        let services = stage.cache.services
        let disk = try #require(services.tiers.backing.disk)
        try #require(disk.shardCount == 2)
        let all = (0..<100).map { "http://example.com/\($0)" }
        let urls = try disk.shards.compactMap { shard in
            try all.first { url in
                try disk.shard(services.key(of: CacheRequest(url: url)).key.hash) === shard
            }
        }
        try #require(urls.count == 2)
        for url in urls { #expect(try await stage.get(url).source == .origin) }
        try await stage.cache.flush()
        return (stage, urls)
    }

    @Test(arguments: [false, true])
    func nothingPurgedIsServedAfterTheDirectoryIsGone(isByTag: Bool) async throws {
        let (stage, urls) = try await stage()
        files.erase("/cache")
        await #expect(throws: CacheError.self) {
            _ = try await stage.cache.remove(CacheRequest(url: urls[0]))
        }
        #expect(try await stage.get(urls[1]).source == .fresh, "its shard has not noticed")
        await #expect(throws: CacheError.self) {
            if isByTag {
                _ = try await stage.cache.purge(tag: "t")
            } else {
                _ = try await stage.cache.removeAll()
            }
        }
        for url in urls { #expect(try await stage.get(url).source == .origin) }
        await stage.end()
    }
}
