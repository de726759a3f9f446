/// The places of the readers of one arriving body, and the readers that its writer waits for.
///
///     idle ──asks──▶ reading ──has all its bytes──▶ done
///       ▲                │
///       └──stands still──┘
///
/// The writer of a body that is not stored waits for every reader that is *reading*. An *idle* one
/// has not asked for a byte yet, or has taken none for too long: it holds up nobody. One that is
/// *done* needs no more bytes.
///
/// Invariant, checked by `checkInvariants()`: `rear`, if it is known, is the place of the last
/// reading readers and their number.
struct BodyReaders {
    typealias ID = BodyChain.ReaderID

    enum Pace { case idle, reading, done }

    struct Reader {
        /// The first byte still to read; for a reader of a part it may lie beyond the end.
        var offset: Int
        /// The reader's ticket among the sleepers.
        var sleep: Int?
        var isCutOff = false
        fileprivate(set) var pace = Pace.idle
        /// The place where the watchdog saw the reader, and when it saw it there first.
        fileprivate var seenOffset = -1
        fileprivate var seenNanoseconds: UInt64 = 0

        init(offset: Int) { self.offset = offset }
    }

    private(set) var places: [ID: Reader] = [:]
    private(set) var lastID = 0
    /// The greatest offset of a reader that has asked for bytes.
    private(set) var fastestOffset = 0
    /// The end of the bytes that are read back from a store: a reader before it is waited for as if
    /// it were there.
    var floor = 0 { didSet { rear = nil } }

    /// The place of the last readers that read, and their number; `nil` if it must be counted.
    ///
    /// Ten thousand readers read the same piece one after the other: only the last of them moves
    /// the rear.
    private var rear: (place: Int, count: Int)?

    var count: Int { places.count }
    var isEmpty: Bool { places.isEmpty }

    subscript(id: ID) -> Reader? { places[id] }

    mutating func add(at offset: Int) -> ID {
        lastID += 1
        places[lastID] = Reader(offset: offset)
        return lastID
    }

    /// The reader asks for bytes.
    mutating func begin(_ id: ID) {
        guard var reader = places[id], reader.pace == .idle else { return }
        fastestOffset = max(fastestOffset, reader.offset)
        if Mutant.waitsForTheFastestOnly.isOn { return }
        reader.pace = .reading
        reader.seenOffset = -1
        places[id] = reader
        enterRear(reader)
    }

    /// The reader has got the bytes up to `offset`, and needs none from `limit` on.
    mutating func move(_ id: ID, to offset: Int, limit: Int) {
        guard var reader = places[id] else { return }
        leaveRear(reader)
        reader.offset = offset
        if offset >= limit { reader.pace = .done }
        places[id] = reader
        enterRear(reader)
        fastestOffset = max(fastestOffset, offset)
    }

    /// Removes a reader; `end` is that of the bytes so far, or `nil` if no more arrive.
    mutating func remove(_ id: ID, end: Int?) {
        guard let reader = places.removeValue(forKey: id) else { return }
        leaveRear(reader)
        guard let end, reader.offset >= fastestOffset else { return }
        fastestOffset = min(end, places.values.lazy.map(\.offset).max() ?? reader.offset)
    }

    mutating func setSleep(_ ticket: Int?, of id: ID) {
        assert(places[id] != nil, "only a reader sleeps")
        places[id]?.sleep = ticket
    }

    /// The place of the last reader that reads; `nil` if none does.
    mutating func rearPlace() -> Int? {
        if rear == nil { rear = countedRear }
        return rear?.place
    }

    /// Cuts off the idle readers before `limit` that read from memory.
    ///
    /// - Returns: The place of the last other reader that needs bytes, or `front` if that is less.
    ///   An idle reader before `floor` has its next bytes there, unless that is before `limit`.
    mutating func cutOff(before limit: Int, front: Int) -> Int {
        var last = front
        for (id, reader) in places where !reader.isCutOff {
            switch reader.pace {
            case .done: break
            case .reading: last = min(last, place(of: reader))
            case .idle where reader.offset < floor: last = min(last, max(floor, limit))
            case .idle where reader.offset < limit: places[id]?.isCutOff = true
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
                rear = nil
                hasFoundOne = true
            }
            places[id] = reader
        }
        return hasFoundOne
    }

    private func place(of reader: Reader) -> Int { max(reader.offset, floor) }

    private mutating func enterRear(_ reader: Reader) {
        guard reader.pace == .reading, let last = rear else { return }
        let place = place(of: reader)
        if place < last.place {
            rear = (place, 1)
        } else if place == last.place {
            rear = (place, last.count + 1)
        }
    }

    private mutating func leaveRear(_ reader: Reader) {
        guard reader.pace == .reading, let last = rear, place(of: reader) == last.place else {
            return
        }
        rear = last.count > 1 ? (last.place, last.count - 1) : nil
    }

    private var countedRear: (place: Int, count: Int)? {
        var counted: (place: Int, count: Int)?
        for reader in places.values where reader.pace == .reading {
            let place = place(of: reader)
            if let last = counted, last.place <= place {
                if last.place == place { counted = (place, last.count + 1) }
            } else {
                counted = (place, 1)
            }
        }
        return counted
    }

    func checkInvariants() {
        #if ENGINE_CHECKS
            guard let rear else { return }
            let counted = countedRear
            precondition(counted?.place == rear.place && counted?.count == rear.count)
        #endif
    }
}
