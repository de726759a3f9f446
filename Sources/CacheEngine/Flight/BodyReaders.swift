/// The places of the readers of one arriving body, and the readers that its writer waits for.
///
///     idle ──asks──▶ reading ──has all its bytes──▶ done
///       ▲                │
///       └──stands still──┘
///
/// The writer of a body that is not stored waits for every reader that is *reading*. An *idle* one
/// has not asked for a byte yet, or has taken none for too long: it holds up nobody. One that is
/// *done* needs no more bytes, nor does one that is cut off; either may stay until it is released.
///
/// Invariants, checked by `checkInvariants()`:
/// 1. `reading` and `needing`, if they are known, are the places of the last of these readers and
///    their numbers.
/// 2. `needingCount` is the number of readers that need bytes.
struct BodyReaders {
    typealias ID = BodyChain.ReaderID

    enum Pace { case idle, reading, done }

    struct Reader {
        /// The first byte still to read; for a reader of a part it may lie beyond the end.
        var offset: Int
        /// The reader's ticket among the sleepers.
        var sleep: Int?
        fileprivate(set) var isCutOff = false
        fileprivate(set) var pace = Pace.idle
        /// Whether the reader is idle because it has taken nothing for too long.
        fileprivate var hasStoodStill = false
        /// The place where the watchdog saw the reader, and when it saw it there first.
        fileprivate var seenOffset = -1
        fileprivate var seenNanoseconds: UInt64 = 0

        init(offset: Int) { self.offset = offset }

        fileprivate var needsBytes: Bool { pace != .done && !isCutOff }
    }

    /// The place of the last readers of a kind, and their number; without one, the place is beyond
    /// all others.
    private struct Rear: Hashable {
        var place = Int.max
        var count = 0

        mutating func enter(_ place: Int) {
            if place < self.place {
                self = Rear(place: place, count: 1)
            } else if place == self.place {
                count += 1
            }
        }

        /// The rear once a reader at `place` has left; `nil` if it must be counted.
        func left(_ place: Int) -> Rear? {
            guard place == self.place else { return self }
            return count > 1 ? Rear(place: place, count: count - 1) : nil
        }
    }

    private(set) var places: [ID: Reader] = [:]
    private(set) var lastID = 0
    /// The readers that `cutOff` has looked at so far.
    private(set) var lookedAtCount = 0
    /// The greatest offset of a reader that has asked for bytes; `nil` if it must be found, as such a
    /// reader has left.
    private var fastest: Int? = 0
    /// The end of the bytes that are read back from a store: a reader before it is waited for as if
    /// it were there.
    var floor = 0 { didSet { reading = nil } }

    /// The last readers that read; `nil` if they must be counted.
    ///
    /// Ten thousand readers read the same piece one after the other: only the last of them moves
    /// the rear.
    private var reading: Rear? = Rear()
    /// The last readers that need bytes, at their own offsets; `nil` if they must be counted.
    private var needing: Rear? = Rear()
    private var needingCount = 0

    var count: Int { places.count }
    var isEmpty: Bool { places.isEmpty }

    /// Whether any reader needs bytes, idle ones included.
    var needsBytes: Bool { needingCount > 0 }

    subscript(id: ID) -> Reader? { places[id] }

    mutating func add(at offset: Int) -> ID {
        lastID += 1
        let reader = Reader(offset: offset)
        places[lastID] = reader
        enterRears(reader)
        return lastID
    }

    /// The reader asks for bytes.
    mutating func begin(_ id: ID) {
        guard var reader = places[id], reader.pace == .idle else { return }
        if let fastest { self.fastest = max(fastest, reader.offset) }
        if Mutant.waitsForTheFastestOnly.isOn { return }
        leaveRears(reader)
        reader.pace = .reading
        reader.hasStoodStill = false
        reader.seenOffset = -1
        places[id] = reader
        enterRears(reader)
    }

    /// The reader has got the bytes up to `offset`, and needs none from `limit` on.
    mutating func move(_ id: ID, to offset: Int, limit: Int) {
        guard var reader = places[id] else { return }
        leaveRears(reader)
        reader.offset = offset
        if offset >= limit { reader.pace = .done }
        places[id] = reader
        enterRears(reader)
        if let fastest { self.fastest = max(fastest, offset) }
    }

    /// Removes a reader; `end` is that of the bytes so far, or `nil` if no more arrive.
    mutating func remove(_ id: ID, end: Int?) {
        guard let reader = places.removeValue(forKey: id) else { return }
        leaveRears(reader)
        guard let end, reader.offset >= fastest ?? reader.offset else { return }
        fastest = places.isEmpty ? min(end, reader.offset) : nil
    }

    /// The greatest offset of a reader that has asked for bytes, of which there are those up to `end`.
    mutating func fastestOffset(end: Int) -> Int {
        let found = fastest ?? min(end, places.values.lazy.map(\.offset).max() ?? 0)
        fastest = found
        return found
    }

    /// Whether the reader is the last one at a place that the writer waits for, or whose bytes are
    /// kept: without it, bytes may be dropped.
    mutating func isLast(_ id: ID) -> Bool {
        guard let reader = places[id], reader.needsBytes else { return false }
        if Mutant.looksAtAllWhenOneLeaves.isOn { return true }
        return neededOffset() == reader.offset && needing?.count == 1
            || rearPlace() == place(of: reader) && reading?.count == 1
    }

    mutating func setSleep(_ ticket: Int?, of id: ID) {
        assert(places[id] != nil, "only a reader sleeps")
        places[id]?.sleep = ticket
    }

    /// The place of the last reader that reads; `nil` if none does.
    mutating func rearPlace() -> Int? {
        let rear = reading ?? countedReading
        reading = rear
        return rear.count > 0 ? rear.place : nil
    }

    /// The offset of the last reader that needs bytes, idle ones included; `nil` if none does.
    mutating func neededOffset() -> Int? {
        let rear = needing ?? countedNeeding
        needing = rear
        return rear.count > 0 ? rear.place : nil
    }

    /// Cuts off the idle readers before `limit` that read from memory; one that has stood still, if
    /// it is before `stillLimit`.
    ///
    /// - Returns: The place of the last other reader that needs bytes, or `front` if that is less.
    ///   An idle reader before `floor` has its next bytes there, unless that is before `limit`.
    mutating func cutOff(before limit: Int, stillBefore stillLimit: Int, front: Int) -> Int {
        var last = front
        lookedAtCount += places.count
        for (id, reader) in places where !reader.isCutOff {
            let limit = reader.hasStoodStill ? stillLimit : limit
            switch reader.pace {
            case .done: break
            case .reading: last = min(last, place(of: reader))
            case .idle where reader.offset < floor: last = min(last, max(floor, limit))
            case .idle where reader.offset < limit:
                places[id]?.isCutOff = true
                needing = nil
                needingCount -= 1
            case .idle: last = min(last, reader.offset)
            }
        }
        return last
    }

    /// Makes idle the readers at or before `offset` that have not moved for so long.
    ///
    /// - Returns: Whether there was any.
    mutating func noteStill(
        upTo offset: Int,
        for limitNanoseconds: UInt64,
        nowNanoseconds: UInt64
    ) -> Bool {
        var hasFoundOne = false
        for (id, var reader) in places where reader.pace == .reading {
            guard place(of: reader) <= offset else { continue }
            if reader.seenOffset != reader.offset {
                reader.seenOffset = reader.offset
                reader.seenNanoseconds = nowNanoseconds
            } else if nowNanoseconds &- reader.seenNanoseconds >= limitNanoseconds {
                reader.pace = .idle
                reader.hasStoodStill = true
                reading = nil
                hasFoundOne = true
            }
            places[id] = reader
        }
        return hasFoundOne
    }

    private func place(of reader: Reader) -> Int { max(reader.offset, floor) }

    private mutating func enterRears(_ reader: Reader) {
        let place = place(of: reader)
        if reader.pace == .reading { reading?.enter(place) }
        guard reader.needsBytes else { return }
        needing?.enter(reader.offset)
        needingCount += 1
    }

    private mutating func leaveRears(_ reader: Reader) {
        let place = place(of: reader)
        if reader.pace == .reading { reading = reading?.left(place) }
        guard reader.needsBytes else { return }
        needing = needing?.left(reader.offset)
        needingCount -= 1
    }

    private var countedReading: Rear {
        var rear = Rear()
        for reader in places.values where reader.pace == .reading {
            rear.enter(place(of: reader))
        }
        return rear
    }

    private var countedNeeding: Rear {
        var rear = Rear()
        for reader in places.values where reader.needsBytes { rear.enter(reader.offset) }
        return rear
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            precondition(reading == nil || reading == countedReading)
            precondition(needing == nil || needing == countedNeeding)
            precondition(needingCount == places.values.lazy.filter(\.needsBytes).count)
        #endif
    }
}
