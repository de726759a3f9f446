import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// A disk tier in its own directory, with numbers as keys.
///
/// Reading a key checks every byte of its newest value.
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

    /// A body in which every part identifies the key and the version.
    static func body(_ number: Int, version: Int, bytes: Int) -> [UInt8] {
        VersionedEntry.body(number, version: version, bytes: bytes)
    }

    func entry(
        _ number: Int,
        version: Int = 0,
        bytes: Int = 500,
        tags: [String] = [],
        flags: EntryHead.Flags = [],
        body: [UInt8]? = nil
    ) throws -> Entry {
        VersionedEntry.make(
            number,
            version: version,
            body: body ?? Self.body(number, version: version, bytes: bytes),
            tags: try #require(TagList(tags)),
            flags: flags,
            createdSeconds: UInt32(clamping: now),
            hasher: try #require(tier).hasher
        )
    }

    func storeKey(_ number: Int) throws -> StoreKey {
        VersionedEntry.storeKey(number, try #require(tier).hasher)
    }

    func read(_ number: Int) async throws -> StoredEntry? {
        try await #require(tier).entry(for: storeKey(number))
    }

    /// The stored version, after a check of every byte; `nil` if no entry is readable.
    func version(_ number: Int, bytes: Int = 500) async throws -> Int? {
        guard let stored = try await read(number) else { return nil }
        switch await VersionedEntry.check(stored, is: number) {
        case .version(let version): return version
        case .unreadable: return nil
        case .wrong:
            Issue.record("key \(number) gave bytes of no version")
            return nil
        }
    }

    /// The bytes that the directory's files occupy on the device.
    var fileBytes: Int {
        let paths = FileManager.default.enumerator(atPath: directory)?.allObjects ?? []
        return paths.compactMap { $0 as? String }.reduce(0) { sum, path in
            var status = stat()
            guard lstat(directory + "/" + path, &status) == 0 else { return sum }
            return sum + Int(status.st_blocks) * 512
        }
    }
}

extension DiskStore {
    /// Opens a directory whose last tier was released without a close.
    ///
    /// The threads of that tier may still hold the lock for a moment.
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
    /// Duplicates this process's open descriptors of files with that name in the directory.
    func copiesOfOpenFiles(named name: String) -> [Int32] {
        let open = "/proc/self/fd"
        let descriptors = (try? FileManager.default.contentsOfDirectory(atPath: open)) ?? []
        let own = URL(fileURLWithPath: directory).standardizedFileURL.lastPathComponent
        return descriptors.compactMap(Int32.init).compactMap { descriptor in
            let path = try? FileManager.default
                .destinationOfSymbolicLink(atPath: "\(open)/\(descriptor)")
            guard let path, path.hasSuffix("/\(own)/\(name)") else { return nil }
            let copy = dup(descriptor)
            return copy < 0 ? nil : copy
        }
    }

    /// The names of the files with large bodies.
    func bodyFiles() -> [String] {
        let paths = FileManager.default.enumerator(atPath: directory)?.allObjects ?? []
        return paths.compactMap { $0 as? String }.filter { $0.hasSuffix(".body") }
    }
}

extension DiskTier {
    /// Whether there may be an entry; another key with the same hash counts as well.
    func contains(_ hash: KeyHash) -> Bool {
        shard(hash).state.withLock { !$0.index.place(of: hash.identity).isNone }
    }
}
