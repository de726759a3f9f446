import Testing

@testable import CacheEngine

@Suite struct RecordPaddingTests {
    /// The memory charges an entry for the bytes that its head states.
    ///
    /// Entries of 64 sizes have every padding that a record can have. Version 4 is stored raw.
    @Test(arguments: [300, 5_000])
    func entryFromDiskHoldsHardlyMoreThanItsCharge(bytes: Int) async throws {
        let store = DiskStore()
        let tier = try await store.open()
        for number in 0..<64 {
            _ = tier.enqueue(try store.entry(number, version: 4, bytes: bytes + number))
            try await tier.flush()
            let stored = try #require(try await store.read(number))
            let body = DiskStore.body(number, version: 4, bytes: bytes + number)
            #expect(stored.entry.body.array == body)
            let held = Entry.allocationBytes(stored.entry.storage.capacity)
            // An allocator leaves a rest that is too small for another allocation.
            let charge = stored.entry.chargeBytes
            #expect(held <= charge + charge / 64 + 16, "\(number)")
        }
        #expect(tier.statistics.hitsCached + tier.statistics.hitsWaited == 64)
        await store.close()
    }
}
