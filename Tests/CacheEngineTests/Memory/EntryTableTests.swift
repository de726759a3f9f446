import CacheTestSupport
import Testing

@testable import CacheEngine

@Suite("Table of entries")
struct EntryTableTests {
    /// The copy of a full table, some of whose entries passed full buckets.
    @Test("A larger table holds every entry with its hits", arguments: 0..<20 as Range<UInt64>)
    func copying(seed: UInt64) {
        var random = SeededRandom(seed: seed)
        let table = EntryTable(bucketCount: Int.random(in: 1...12, using: &random))
        let larger = EntryTable(
            bucketCount: table.bucketCount + Int.random(in: 1...9, using: &random)
        )
        defer {
            table.deallocate()
            larger.deallocate()
        }
        var entries: [Int: Entry] = [:]
        for number in 0..<table.slotCount {
            let entry = MemoryFixtures.entry("\(seed) \(number)")
            let slot = table.insert(.passUnretained(entry.storage), entry.head.hash)
            table.setHits(of: slot, to: Int.random(in: 0...15, using: &random))
            entries[slot] = entry
        }
        // Not from the same buckets, so that entries stand beyond free slots.
        for slot in 0..<table.slotCount where Int.random(in: 0..<4, using: &random) == 0 {
            if let entry = entries.removeValue(forKey: slot) { table.remove(slot, entry.head.hash) }
        }

        let newSlots = table.copyAll(to: larger)
        for slot in 0..<table.slotCount {
            guard let entry = entries[slot] else {
                #expect(newSlots[slot] == .max)
                continue
            }
            let place = larger.slot(of: entry.head.hash)
            #expect(place == Int(newSlots[slot]))
            #expect(place.map { larger.hits(of: $0) } == table.hits(of: slot))
            #expect(table.slot(of: entry.head.hash) == slot, "readers still use the old table")
        }
        // The counts of passed buckets are right: nothing stays, and nothing was lost.
        for (slot, entry) in entries {
            larger.remove(Int(newSlots[slot]), entry.head.hash)
            #expect(larger.slot(of: entry.head.hash) == nil)
        }
        #expect((0..<larger.slotCount).allSatisfy { larger.entry(at: $0) == nil })
    }
}
