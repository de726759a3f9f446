import CacheTestSupport
import Testing

@testable import CacheEngine

/// The order in which large bodies make room.
@Suite struct UsedBodyTests {
    private static let bytes = 400_000

    /// Room for some nine bodies beside the log.
    private static func store() -> DiskStore {
        let store = DiskStore(segmentBytes: 256 << 10, segments: 16)
        store.configuration.entryBytesMax = 1 << 20
        return store
    }

    /// Stores a body that does not compress.
    private static func write(_ number: Int, in store: DiskStore) async throws {
        let outcome = try await LargeBodyTests.write(number, version: 4, bytes: bytes, in: store)
        #expect(outcome == .stored, "\(number)")
        try await store.tier?.flush()
    }

    private static func isHeld(_ number: Int, in store: DiskStore) async throws -> Bool {
        try await store.version(number, bytes: bytes) == 4
    }

    @Test func bodyInUseOutlivesYoungerOnes() async throws {
        let store = Self.store()
        let tier = try await store.open()
        for number in 0..<40 {
            try await Self.write(number, in: store)
            #expect(try await Self.isHeld(0, in: store), "\(number)")
            #expect(store.fileBytes <= store.configuration.capacityBytes)
        }
        #expect(tier.statistics.bodiesReclaimed > 20)
        #expect(try await Self.isHeld(39, in: store))
        #expect(try await Self.isHeld(1, in: store) == false)
        await store.close()
    }

    @Test func bodyThatIsUsedNoLongerGoes() async throws {
        let store = Self.store()
        _ = try await store.open()
        try await Self.write(0, in: store)
        // More uses are not counted.
        for _ in 0..<10 { #expect(try await Self.isHeld(0, in: store)) }
        for number in 1..<60 { try await Self.write(number, in: store) }
        #expect(try await Self.isHeld(0, in: store) == false)
        await store.close()
    }

    @Test func newBodyIsStoredThoughAllAreInUse() async throws {
        let store = Self.store()
        let tier = try await store.open()
        for number in 0..<40 {
            try await Self.write(number, in: store)
            for older in 0...number where try await Self.isHeld(older, in: store) {
                _ = try await Self.isHeld(older, in: store)
            }
            #expect(try await Self.isHeld(number, in: store), "\(number)")
        }
        #expect(tier.statistics.bodiesReclaimed > 20)
        await store.close()
    }

    /// A body that was spared has no use left, and a record of before.
    @Test func recordOfASparedBodyOutlivesItsSegment() async throws {
        let store = Self.store()
        let tier = try await store.open()
        try await Self.write(0, in: store)
        #expect(try await Self.isHeld(0, in: store))
        var number = 1
        while tier.statistics.bodiesReclaimed == 0 {
            try await Self.write(number, in: store)
            number += 1
        }
        let reclaimed = tier.statistics.segmentsReclaimed
        for entry in 1_000..<1_400 {
            _ = tier.enqueue(try store.entry(entry, bytes: 2_000))
            try await tier.flush()
        }
        #expect(tier.statistics.segmentsReclaimed > reclaimed)
        #expect(try await Self.isHeld(0, in: store))
        await store.close()
    }
}
