import CacheEngine

/// The purges and removals that decide which shared records this machine may use.
///
/// A record carries the place in the order of purges at which its fetch began. It is used if no
/// purge that covers it has a later place. Purges that this machine does not know, because they were
/// trimmed from the log or are too many to be remembered, lie below `floor`: no record from below is
/// used. While a purge of this machine is on its way to the log, no record is used that it covers.
/// One that failed has its place behind the end of the log, once that is known.
///
/// Entries that were removed or replaced on this machine alone have moments: records that were
/// published by then are not used.
struct PurgeHorizon: Sendable {
    /// The purges of this machine that the log has not confirmed.
    struct Unplaced {
        /// On their way to the log.
        var underWay = 0
        /// The number of the last one that has failed.
        var failed: UInt64?
        /// The epoch in which the failed ones have a place all the same, behind the end of the log.
        var epoch: UInt64?

        /// Whether `places` has all of them.
        var isPlaced: Bool { underWay == 0 && (failed == nil || epoch != nil) }
    }

    /// A change on this machine that the store has not confirmed yet.
    struct Mark: Hashable, Sendable {
        fileprivate let key: KeyHash
        fileprivate let number: UInt64
    }

    /// The end of entries on this machine.
    private struct End {
        /// In milliseconds of the fleet's time.
        var until = Int64.min
        /// The last mark that was made before.
        var mark: UInt64 = 0

        mutating func join(_ other: End) {
            until = max(until, other.until)
            mark = max(mark, other.mark)
        }
    }

    /// Beyond this number of purges or moments, the older ones are joined; a log that has more
    /// entries than it keeps at least is below it.
    private let countMax: Int
    /// The same for the memory of the purges.
    private let bytesMax: Int
    private let hasher = KeyHasher.random()

    /// The log whose positions are known; `nil` while no log is known.
    private(set) var log: [UInt8]?
    private var floor: UInt64 = 0
    /// The latest place of each purge that the log has; it only rises.
    private var places: [SharedPurge.Scope: UInt64] = [:]
    /// The memory that `places` takes, about.
    private var placesBytes = 0
    private(set) var unplaced: [SharedPurge.Scope: Unplaced] = [:]
    /// The epoch in which every failed purge has a place.
    private var placedEpoch: UInt64?
    /// The last number that was given.
    private(set) var numbers: UInt64 = 0
    private var marks: [KeyHash: (until: Int64, number: UInt64)] = [:]
    private var marksMade: UInt64 = 0
    /// The last moment of marks that were joined.
    private var endOfMarks = Int64.min
    private var ends: [KeyHash: End] = [:]
    private var endOfAll = End()

    init(countMax: Int = 2 * PurgeLogWriter.streamCountMin, bytesMax: Int = 32 << 20) {
        self.countMax = countMax
        self.bytesMax = bytesMax
    }

    // MARK: Purges

    /// Begins with the purges of a log, all that came after `floor`.
    mutating func begin(
        log: [UInt8],
        floor: UInt64,
        _ known: [(scope: SharedPurge.Scope, position: UInt64)]
    ) {
        self.log = log
        self.floor = max(self.floor, floor)
        for (scope, position) in known { note(scope, at: position) }
    }

    /// Uses no record until `begin` is called: purges may have been missed, or the log is another.
    mutating func end() {
        log = nil
        floor = 0
        places = [:]
        placesBytes = 0
        placedEpoch = nil
        for scope in Array(unplaced.keys) { unplaced[scope]?.epoch = nil }
    }

    /// The log has a purge at this place.
    mutating func note(_ scope: SharedPurge.Scope, at position: UInt64) {
        let known = places.updateValue(position, forKey: scope)
        if let known {
            if known > position { places[scope] = known }
        } else {
            placesBytes += Self.size(scope)
        }
        while places.count > countMax || placesBytes > bytesMax { forgetTheOldest() }
    }

    /// Forgets a quarter, so that the places are sorted seldom: no record from below the last of them
    /// is used any more.
    private mutating func forgetTheOldest() {
        let last = places.values.sorted()[places.count / 4]
        floor = max(floor, last)
        places = places.filter { $0.value > last }
        placesBytes = places.keys.reduce(0) { $0 + Self.size($1) }
    }

    private static func size(_ scope: SharedPurge.Scope) -> Int {
        switch scope {
        case .key(let bytes): FleetPurge.fixedBytes + bytes.count
        case .tag(let tag): FleetPurge.fixedBytes + tag.utf8.count
        case .everything: FleetPurge.fixedBytes
        }
    }

    /// A purge of this machine is about to be applied.
    mutating func announce(_ scope: SharedPurge.Scope) {
        unplaced[scope, default: Unplaced()].underWay += 1
    }

    /// The number of purges that are sent to the log together; later ones have a larger number.
    ///
    /// One may be refused at once while an earlier one is on its way, whose confirmation says nothing
    /// of it.
    mutating func nextNumber() -> UInt64 {
        numbers += 1
        return numbers
    }

    /// The log has taken a purge of this machine, which was announced.
    ///
    /// It covers those of its scope that the log has not confirmed before, and one of everything
    /// those of all scopes.
    mutating func confirm(_ scope: SharedPurge.Scope, at position: UInt64, _ number: UInt64) {
        note(scope, at: position)
        settle(scope)
        let covered = scope == .everything ? Array(unplaced.keys) : [scope]
        for scope in covered { forgetFailure(of: scope, before: number) }
    }

    /// The log has not confirmed a purge of this machine: no record is used that it covers, until a
    /// later one of its scope is confirmed, or one of everything, or the end of the log is noted.
    ///
    /// Too many of them are joined to one of everything.
    mutating func fail(_ scope: SharedPurge.Scope, _ number: UInt64) {
        settle(scope)
        note(failed: number, of: scope)
        guard unplaced.count > countMax else { return }
        for scope in Array(unplaced.keys) { forgetFailure(of: scope, before: .max) }
        note(failed: numbers, of: .everything)
    }

    private mutating func note(failed number: UInt64, of scope: SharedPurge.Scope) {
        let known = unplaced[scope, default: Unplaced()].failed ?? 0
        unplaced[scope, default: Unplaced()].failed = max(known, number)
        unplaced[scope]?.epoch = nil
        placedEpoch = nil
    }

    /// The log was read to its end at `position` by a question that was asked after the purges up
    /// to `number` had been sent.
    ///
    /// Those of them that failed have their place behind the end: a record of a later place was
    /// fetched after them. That holds within one epoch. Of two masters at once, the one may have
    /// begun a later epoch before a purge failed at the other.
    mutating func noteEnd(at position: FleetPosition, _ number: UInt64) {
        let epoch = position.epoch
        guard placedEpoch != epoch, !Mutant.refusesFailedScopesForEver.isOn else { return }
        placedEpoch = epoch
        for (scope, state) in unplaced where state.epoch != epoch {
            guard let failed = state.failed else { continue }
            if failed > number {
                placedEpoch = nil
            } else {
                note(scope, at: position.rawValue + 1)
                unplaced[scope]?.epoch = epoch
            }
        }
    }

    private mutating func forgetFailure(of scope: SharedPurge.Scope, before number: UInt64) {
        guard var state = unplaced[scope] else { return }
        if let failed = state.failed, failed < number { state.failed = nil }
        unplaced[scope] = state.underWay == 0 && state.failed == nil ? nil : state
    }

    private mutating func settle(_ scope: SharedPurge.Scope) {
        if (unplaced[scope]?.underWay ?? 0) > 0 { unplaced[scope]?.underWay -= 1 }
    }

    // MARK: Changes on this machine

    /// Records of the key that are published by `milliseconds` are not used until the store
    /// confirms the change, and `unmark` is called.
    mutating func mark(_ key: [UInt8], until milliseconds: Int64) -> Mark {
        let hash = hash(key)
        marksMade += 1
        let mark = Mark(key: hash, number: marksMade)
        marks[hash] = (max(marks[hash]?.until ?? .min, milliseconds), marksMade)
        if marks.count > countMax {
            endOfMarks = max(endOfMarks, marks.values.map(\.until).max() ?? .min)
            marks = [:]
        }
        return mark
    }

    /// The store has confirmed a change; a later change of the key has a mark of its own.
    mutating func unmark(_ mark: Mark) {
        if marks[mark.key]?.number == mark.number { marks[mark.key] = nil }
    }

    /// A resource ended on this machine: records of all its entries that were published by then are
    /// not used any more.
    mutating func end(_ resource: [UInt8], at milliseconds: Int64) {
        ends[hash(resource), default: End()].join(End(until: milliseconds, mark: marksMade))
        guard ends.count > countMax else { return }
        for end in ends.values { endOfAll.join(end) }
        ends = [:]
    }

    /// Records that were published by then are not used any more, whatever their key.
    mutating func endEverything(at milliseconds: Int64) {
        endOfAll.join(End(until: milliseconds, mark: marksMade))
    }

    /// The last end of a resource, or of everything, on this machine.
    private func end(of resource: [UInt8]) -> End {
        var end = endOfAll
        if !ends.isEmpty, let own = ends[hash(resource)] { end.join(own) }
        return end
    }

    private func hash(_ bytes: [UInt8]) -> KeyHash { bytes.withUnsafeBytes { hasher.hash($0) } }

    // MARK: Records

    /// The moment by which a record of the key must not have been published.
    ///
    /// The caller reads it before it asks for the record. In between, a change may be confirmed, and
    /// the reply may hold the record from before that change.
    func hidden(_ key: SharedKey) -> Int64 {
        if Mutant.readsBackWhatItRemoved.isOn { return .min }
        let moment = max(end(of: key.resource).until, endOfMarks)
        return marks.isEmpty ? moment : max(moment, marks[hash(key.bytes)]?.until ?? .min)
    }

    /// Whether a record of this machine may still be sent, whose publication made that mark.
    ///
    /// It may not if its log is another one by now, or if its resource has ended since: the other
    /// machines would use a response that was removed here.
    func maySend(_ key: SharedKey, _ mark: Mark, log publishedLog: [UInt8]) -> Bool {
        publishedLog == log && mark.number > end(of: key.resource).mark
    }

    /// Whether a record may be used that was asked for when `hidden` gave that moment.
    ///
    /// `epoch` is the one that this machine has read. The log of a later one may lack purges that
    /// this machine has, and yet give its records larger places: that log is read first.
    func permits(
        _ record: SharedRecord,
        of key: SharedKey,
        hidden: Int64 = .min,
        epoch: UInt64 = .max
    ) -> Bool {
        if Mutant.usesPurgedRecords.isOn { return record.log == log }
        guard record.log == log, record.position >= floor,
            FleetPosition(rawValue: record.position).epoch <= epoch,
            record.publishedMilliseconds > max(hidden, self.hidden(key))
        else { return false }
        if places.isEmpty, unplaced.isEmpty { return true }
        let tags = record.entry.tags.map { SharedPurge.Scope.tag($0) }
        return ([.everything, .key(key.resource)] + tags).allSatisfy { scope in
            unplaced[scope]?.isPlaced ?? true && record.position >= places[scope] ?? 0
        }
    }
}
