import Testing

@testable import CacheEngine

/// The walk of a removal of many entries over the slots of one shard.
@Suite struct SlotWalkTests {
    @Test func walkVisitsEachSlotOnce() {
        let table = EntryTable(bucketCount: 8)
        defer { table.deallocate() }
        var walk = SlotWalk()
        var slots: [Int] = []
        while !walk.isDone { slots += walk.advance(in: table, atMost: 24) }
        #expect(slots == Array(0..<64))
    }

    @Test func walkBeginsAgainInALargerTableAtTheSameAddress() {
        // The walk reads nothing of a table but the number of its buckets.
        let base = UnsafeMutableRawPointer.allocate(byteCount: 64, alignment: 64)
        defer { base.deallocate() }
        func table(bucketCount: Int) -> EntryTable {
            base.storeBytes(of: bucketCount, as: Int.self)
            return EntryTable(base: base)
        }
        var walk = SlotWalk()
        #expect(walk.advance(in: table(bucketCount: 8), atMost: 40) == 0..<40)
        #expect(walk.advance(in: table(bucketCount: 16), atMost: 40) == 0..<40)
        #expect(!walk.isDone)
        #expect(walk.advance(in: table(bucketCount: 16), atMost: 100) == 40..<128)
        #expect(walk.isDone)
    }
}
