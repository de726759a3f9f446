import CacheTestSupport
import Testing

@testable import CacheEngine

/// A stored response with a new head and the same body, in memory and on disk.
@Suite struct RenewalTests {
    private static let bodyBytes = 1_500_000

    /// A body that LZ4 does not shrink.
    private static let body: ByteChunk = {
        var random = SeededRandom(seed: 1)
        return ByteChunk((0..<bodyBytes).map { _ in UInt8(truncatingIfNeeded: random.next()) })
    }()

    private static func blueprint(_ key: RequestKey, _ number: UInt8) -> EntryBlueprint {
        EntryBlueprint(key: key, metadata: [number], createdSeconds: 1_000_000)
    }

    /// Renews what is in memory, and returns the bytes that the disk writes for it.
    private static func renew(
        _ key: RequestKey,
        as number: UInt8,
        in tiers: TieredStore,
        on disk: DiskTier
    ) async throws -> Int {
        let written = disk.statistics.bytesWritten
        let old = StoredEntry(try #require(tiers.peek(key)))
        let new = await tiers.renewed(old, as: blueprint(key, number))
        #expect(await tiers.replace(old, by: new, since: tiers.ledger.ticket()))
        #expect(tiers.peek(key)?.body == body)
        try await disk.flush()
        return disk.statistics.bytesWritten - written
    }

    /// Expects the whole body and the head with that number on disk.
    private static func expectOnDisk(
        _ number: UInt8,
        _ key: RequestKey,
        in tiers: TieredStore
    ) async throws {
        _ = key.bytes.withUnsafeBytes { tiers.memory.remove(key.hash, key: $0) }
        let (found, tier) = try #require(await tiers.entry(key))
        #expect(tier == .disk)
        #expect(found.entry.withMetadata { $0.elementsEqual([number]) })
        let file = try #require(found.detachedBody)
        var bytes: [UInt8] = []
        while bytes.count < file.count {
            bytes += try await file.read(bytes.count..<file.count).array
        }
        #expect(ByteChunk(bytes) == body)
    }

    @Test("the renewal of a large body that is on disk writes its record, and not its body")
    func renewalOfALargeBodyLeavesItsFile() async throws {
        let store = DiskStore(segmentBytes: 1 << 20, segments: 64)
        let disk = try await store.open()
        let (tiers, key) = TieredStoreTests.tiers(on: disk)
        let entry = await tiers.makeEntry(Self.blueprint(key, 0), gathered: [Self.body])
        #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        try await disk.flush()
        #expect(disk.statistics.bytesWritten > Self.bodyBytes)
        for number: UInt8 in 1...3 {
            let written = try await Self.renew(key, as: number, in: tiers, on: disk)
            #expect(written < 10_000)
        }
        try await Self.expectOnDisk(3, key, in: tiers)
        await store.close()
    }

    @Test("a body whose file is not written yet, or is damaged, is written with its renewal")
    func renewalWritesABodyThatHasNoGoodFile() async throws {
        let store = DiskStore(segmentBytes: 1 << 20, segments: 64)
        store.configuration.batchBytes = 16 << 20
        store.configuration.flushMilliseconds = 1_000_000
        let disk = try await store.open()
        let (tiers, key) = TieredStoreTests.tiers(on: disk)
        let entry = await tiers.makeEntry(Self.blueprint(key, 0), gathered: [Self.body])
        #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        #expect(try await Self.renew(key, as: 1, in: tiers, on: disk) > Self.bodyBytes)
        try #require(disk.bodyFile(of: key.hash)).file.noteDamage()
        #expect(disk.bodyFile(of: key.hash) == nil)
        #expect(try await Self.renew(key, as: 2, in: tiers, on: disk) > Self.bodyBytes)
        try await Self.expectOnDisk(2, key, in: tiers)
        await store.close()
    }
}
