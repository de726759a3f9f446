import CacheEngine
import Synchronization

/// The purges that decide which shared records this machine may use.
///
/// A record carries the place in the order of purges at which its fetch began. It is used if no
/// purge that covers it has a later place. Purges that this machine does not know, because they were
/// trimmed from the log or are too many to be remembered, lie below `floor`: no record from below is
/// used.
///
/// Entries that were removed or replaced on this machine alone have marks: until the store confirms
/// the change, records that were published by then are not used.
struct PurgeHorizon: Sendable {
    /// Beyond this number of purges or marks, the older ones are joined.
    private let countMax: Int

    /// The log whose positions are known; `nil` while none is.
    private(set) var log: [UInt8]?
    private var floor = UInt64.max
    private var everything: UInt64 = 0
    private var purges: [SharedPurge.Scope: UInt64] = [:]
    /// Moments of the fleet's time, in milliseconds; records published by then are not used.
    private var marks: [[UInt8]: Int64] = [:]
    private var markFloor = Int64.min

    init(countMax: Int = 65_536) { self.countMax = countMax }

    /// The place of a purge that is on its way to the log: it covers every record.
    static let pending = UInt64.max

    /// Begins with the purges of a log, all that came after `floor`.
    mutating func begin(
        log: [UInt8],
        floor: UInt64,
        _ known: [(scope: SharedPurge.Scope, position: UInt64)]
    ) {
        let own = purges.filter { $0.value == Self.pending }
        let isEverythingPending = everything == Self.pending
        self.log = log
        self.floor = floor
        everything = isEverythingPending ? Self.pending : 0
        purges = own
        for (scope, position) in known { note(scope, at: position) }
    }

    /// Uses no record until `begin` is called: purges may have been missed.
    mutating func end() { log = nil }

    /// A purge has this place.
    mutating func note(_ scope: SharedPurge.Scope, at position: UInt64) {
        guard scope != .everything else { return everything = max(everything, position) }
        purges[scope] = max(purges[scope] ?? 0, position)
        guard purges.count > countMax else { return }
        let places = purges.values.filter { $0 != Self.pending }
        floor = max(floor, places.max() ?? Self.pending)
        purges = purges.filter { $0.value == Self.pending }
        if purges.count > countMax / 2 { floor = Self.pending }
    }

    /// The log has confirmed a purge of this machine, which was pending.
    mutating func confirm(_ scope: SharedPurge.Scope, at position: UInt64) {
        if scope == .everything { everything = 0 } else { purges[scope] = nil }
        note(scope, at: position)
    }

    /// Records of the key that are published by `milliseconds` are not used.
    mutating func mark(_ key: [UInt8], until milliseconds: Int64) {
        if Mutant.readsBackWhatItRemoved.isOn { return }
        marks[key] = max(marks[key] ?? .min, milliseconds)
        guard marks.count > countMax else { return }
        markFloor = max(markFloor, marks.values.max() ?? .max)
        marks = [:]
    }

    /// The store has no older record of the key any more.
    mutating func unmark(_ key: [UInt8], from milliseconds: Int64) {
        // A later change has a mark of its own.
        if marks[key] == milliseconds { marks[key] = nil }
    }

    /// The moment by which a record of the key must not have been published.
    ///
    /// It is read before the record is asked for: the store may confirm a change between the two,
    /// and the record may still be the one from before the change.
    func mark(of key: [UInt8]) -> Int64 { max(marks[key] ?? .min, markFloor) }

    /// Whether a record may be used that was asked for when its key had that mark.
    func permits(_ record: SharedRecord, of key: SharedKey, mark: Int64 = .min) -> Bool {
        if Mutant.usesPurgedRecords.isOn { return record.log == log }
        guard record.log == log, record.position >= floor, record.position >= everything,
            record.position >= purges[.key(key.resource)] ?? 0,
            record.publishedMilliseconds > max(mark, self.mark(of: key.bytes))
        else { return false }
        return record.entry.tags.allSatisfy { record.position >= purges[.tag($0)] ?? 0 }
    }
}
