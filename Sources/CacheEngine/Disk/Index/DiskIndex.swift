/// The index of one disk shard: it maps an entry's identity to its place, in 16 bytes a slot.
///
/// The slots are spread over 256 tables that grow one at a time, so that no single growth takes
/// long.
///
/// Two keys with the same identity share a slot: the later key is found, the earlier one is
/// forgotten. The reader compares whole keys.
///
/// `@unchecked Sendable`: the memory has one owner, this value, which cannot be copied.
struct DiskIndex: ~Copyable, @unchecked Sendable {
    private static let tableCount = 256

    private let tables: UnsafeMutablePointer<IndexTable>
    private(set) var count = 0
    private(set) var allocatedBytes = 0

    init(expectedCount: Int = 0) {
        tables = .allocate(capacity: Self.tableCount)
        for number in 0..<Self.tableCount {
            (tables + number).initialize(
                to: IndexTable(expectedCount: expectedCount / Self.tableCount)
            )
            allocatedBytes += tables[number].allocatedBytes
        }
    }

    deinit {
        tables.deinitialize(count: Self.tableCount)
        tables.deallocate()
    }

    func place(of identity: UInt64) -> RecordPlace {
        tables[Self.table(of: identity)].place(of: identity)
    }

    mutating func replace(_ identity: UInt64, with place: RecordPlace) -> Bool {
        tables[Self.table(of: identity)].replace(identity, with: place)
    }

    /// Counts a use of the record, if there still is one.
    mutating func countUse(of identity: UInt64) {
        var place = place(of: identity)
        guard !place.isNone, place.frequency < RecordPlace.frequencyMax else { return }
        place.frequency += 1
        _ = replace(identity, with: place)
    }

    /// Takes one of the uses off that were counted; returns `false` if there are none.
    mutating func takeUse(of identity: UInt64) -> Bool {
        var place = place(of: identity)
        guard !place.isNone, place.frequency > 0 else { return false }
        place.frequency -= 1
        _ = replace(identity, with: place)
        return true
    }

    /// Lets a reclaim write the record again, if there still is one: a newer record needs it.
    mutating func noteNeed(of identity: UInt64) {
        var place = place(of: identity)
        guard !place.isNone, place.frequency < RecordPlace.frequencyToKeep else { return }
        place.frequency = RecordPlace.frequencyToKeep
        _ = replace(identity, with: place)
    }

    mutating func set(_ identity: UInt64, to place: RecordPlace) -> RecordPlace {
        changing(Self.table(of: identity)) { $0.set(identity, to: place) }
    }

    mutating func remove(_ identity: UInt64) -> RecordPlace {
        changing(Self.table(of: identity)) { $0.remove(identity) }
    }

    mutating func removeAll(where isDead: (IndexTable.Slot) -> Bool) {
        for number in 0..<Self.tableCount { removeAll(inTable: number, where: isDead) }
    }

    /// Removes from one table only, so that the caller can release its lock between tables.
    mutating func removeAll(inTable number: Int, where isDead: (IndexTable.Slot) -> Bool) {
        changing(number) { $0.removeAll(where: isDead) }
    }

    func forEach(_ visit: (IndexTable.Slot) -> Void) {
        for number in 0..<Self.tableCount { tables[number].forEach(visit) }
    }

    func forEach(inTable number: Int, _ visit: (IndexTable.Slot) -> Void) {
        tables[number].forEach(visit)
    }

    static var tableNumbers: Range<Int> { 0..<tableCount }

    private static func table(of identity: UInt64) -> Int { Int(identity >> 56) }

    private mutating func changing<Result>(
        _ number: Int,
        _ change: (inout IndexTable) -> Result
    ) -> Result {
        let (count, bytes) = (tables[number].count, tables[number].allocatedBytes)
        let result = change(&tables[number])
        self.count += tables[number].count - count
        allocatedBytes += tables[number].allocatedBytes - bytes
        assert(self.count >= 0 && allocatedBytes > 0)
        return result
    }

    #if ENGINE_CHECKS
        func checkInvariants() {
            var total = 0
            for number in 0..<Self.tableCount {
                tables[number].checkInvariants()
                total += tables[number].count
            }
            precondition(total == count)
        }
    #endif
}
