import CacheTestSupport
import Foundation
import Testing

@testable import CacheEngine

/// A disk tier in a directory of its own, as the tests use it: keys are numbers, the newest value
/// of a key is checked as a whole.
final class DiskStore: @unchecked Sendable {
    // @unchecked Sendable: one test at a time uses a store, and awaits every call.
    let directory: String
    var configuration: DiskConfiguration
    var tier: DiskTier?
    var volume: Volume
    var now: Int64 = 1_000_000

    init(
        segmentBytes: Int = 64 << 10,
        segments: Int = 8,
        shards: Int = 1,
        volume: Volume = .system
    ) {
        directory =
            FileManager.default.temporaryDirectory.path() + "/disk-" + UUID().uuidString
        configuration = DiskConfiguration(
            directory: directory,
            capacityBytes: shards * segments * segmentBytes
                + DiskGeometry.reservedBytes(shardCount: shards)
        )
        configuration.segmentBytes = segmentBytes
        configuration.shardCount = shards
        configuration.ioThreads = 2
        self.volume = volume
    }

    deinit { try? FileManager.default.removeItem(atPath: directory) }

    @discardableResult
    func open() async throws -> DiskTier {
        let clock = FixedClock(nowSeconds: now)
        let tier = try await DiskTier.open(configuration, clock: clock, fileSystem: volume)
        self.tier = tier
        return tier
    }

    func close() async {
        #if ENGINE_CHECKS
            await tier?.checkInvariants()
        #endif
        await tier?.close()
        tier = nil
    }

    func reopen() async throws -> DiskTier {
        await close()
        return try await open()
    }

    static func key(_ number: Int) -> [UInt8] { Array("http://example.com/\(number)".utf8) }

    /// A body that says which version of which key it is, all through.
    static func body(_ number: Int, version: Int, bytes: Int) -> [UInt8] {
        var random = SeededRandom(seed: UInt64(number) << 32 | UInt64(version))
        // In every fourth version, nothing a compressor could find.
        if version > 0, version.isMultiple(of: 4) {
            return Self.bytes(bytes) { _ in random.next() }
        }
        let words = (0..<4).map { _ in random.next() }
        return Self.bytes(bytes) { words[$0 / 8 % 4] &+ UInt64($0 / 64) }
    }

    private static func bytes(_ count: Int, _ word: (Int) -> UInt64) -> [UInt8] {
        let words = (0..<(count + 7) / 8).map(word)
        return words.withUnsafeBytes { Array($0.prefix(count)) }
    }

    func entry(
        _ number: Int,
        version: Int = 0,
        bytes: Int = 500,
        tags: [String] = [],
        flags: EntryHead.Flags = [],
        expires: UInt32 = EntryHead.neverExpires,
        body: [UInt8]? = nil
    ) throws -> Entry {
        let tier = try #require(tier)
        let key = Self.key(number)
        let tags = try #require(TagList(tags)).bytes
        let body = body ?? Self.body(number, version: version, bytes: bytes)
        let metadata = Array("version \(version)".utf8)
        let head = EntryHead(
            hash: key.withUnsafeBytes { tier.hasher.hash($0) },
            createdSeconds: UInt32(now),
            expiresSeconds: expires,
            flags: flags,
            keyCount: key.count,
            tagsCount: tags.count,
            metadataCount: metadata.count,
            bodyCount: body.count
        )
        return key.withUnsafeBytes { key in
            tags.withUnsafeBytes { tags in
                metadata.withUnsafeBytes { metadata in
                    Entry(head: head, key: key, tags: tags, metadata: metadata) { target in
                        target.copyBytes(from: body)
                    }
                }
            }
        }
    }

    func storeKey(_ number: Int) throws -> StoreKey {
        let tier = try #require(tier)
        let key = Self.key(number)
        return StoreKey(bytes: key, hash: key.withUnsafeBytes { tier.hasher.hash($0) })
    }

    func read(_ number: Int) async throws -> StoredEntry? {
        try await #require(tier).entry(for: storeKey(number))
    }

    /// The version that is stored, after checking every byte of it; nil when there is none.
    func version(_ number: Int, bytes: Int = 500) async throws -> Int? {
        guard let stored = try await read(number) else { return nil }
        let words = stored.entry.metadata.text.split(separator: " ")
        let version = try #require(words.last.flatMap { Int($0) })
        var body = stored.entry.body.array
        if let detached = stored.detachedBody {
            body = []
            do {
                while body.count < detached.count {
                    body += try await detached.read(body.count..<detached.count).array
                }
            } catch is CacheError {
                // The device failed under the reader: no bytes, so no wrong ones.
                return nil
            }
        }
        #expect(body == Self.body(number, version: version, bytes: body.count))
        return version
    }

    /// Bytes that the directory's files take.
    var fileBytes: Int {
        let paths = FileManager.default.enumerator(atPath: directory)?.allObjects ?? []
        return paths.compactMap { $0 as? String }.reduce(0) { sum, path in
            var status = stat()
            guard lstat(directory + "/" + path, &status) == 0 else { return sum }
            return sum + Int(status.st_blocks) * 512
        }
    }
}

/// A clock that stands still.
struct FixedClock: CacheClock {
    var nowSeconds: Int64
    var monotonicNanoseconds: UInt64 { 0 }
    func sleep(nanoseconds: UInt64) async throws {}
}

extension DiskStore {
    /// Opens a directory whose last tier was let go without closing: its threads still hold the
    /// lock for a moment.
    func openWhenFree() async throws -> DiskTier {
        for _ in 0..<1_000_000 {
            do { return try await open() } catch let error as CacheError {
                guard error.code == .directoryInUse else { throw error }
                await Task.yield()
            }
        }
        throw CacheError(.directoryInUse, detail: "the directory was never let go")
    }
}

extension DiskStore {
    /// The names of the files that hold large bodies.
    func bodyFiles() -> [String] {
        let paths = FileManager.default.enumerator(atPath: directory)?.allObjects ?? []
        return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".body") }
    }
}
