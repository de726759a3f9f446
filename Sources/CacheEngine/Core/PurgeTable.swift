/// The purges in force: the removals, which decide whether an entry is dead, or the soft ones, which
/// decide whether it is stale.
///
/// A purge concerns the entries that it covers and whose numbers are below its own; the order in
/// which purges are inserted does not matter. The table is bounded: a full one forgets its tags and
/// covers all older entries.
struct PurgeTable {
    /// The maximum number of tags; each takes 16 bytes plus the overhead of a hash table.
    static let tagsMax = 65_536
    /// The maximum number of purges by time.
    static let timesMax = 32

    private struct TimePurge {
        var scope: RemovalScope
        var sequence: UInt64
    }

    private let hasher: KeyHasher
    /// The newest purges, for readers that do not have the table.
    private let newest: NewestMark?
    private var floor: UInt64 = 0
    private var classFloors: [UInt64] = [0, 0, 0]
    private var tags: [UInt64: UInt64] = [:]
    private var times: [TimePurge] = []
    /// The largest sequence number of any purge.
    private(set) var sequenceMax: UInt64 = 0

    init(hasher: KeyHasher, newest: NewestMark? = nil) {
        self.hasher = hasher
        self.newest = newest
    }

    mutating func insert(_ scope: RemovalScope, sequence: UInt64) {
        assert(sequence > 0, "numbers begin at one")
        sequenceMax = max(sequenceMax, sequence)
        if case .tag = scope {
            newest?.raise(to: sequence)
        } else {
            newest?.raiseForEverything(to: sequence)
        }
        switch scope {
        case .everything:
            floor = max(floor, sequence)
            forget(upTo: sequence)
        case .storageClass(let kept):
            classFloors[Int(kept.rawValue)] = max(classFloors[Int(kept.rawValue)], sequence)
        case .tag(var tag):
            let key = tag.withUTF8 { hash(UnsafeRawBufferPointer($0)) }
            let known = tags[key]
            if known == nil, tags.count >= Self.tagsMax { escalate() }
            tags[key] = Mutant.keepsTheLastPurge.isOn ? sequence : max(known ?? 0, sequence)
        case .storedAfter, .storedBefore:
            if let known = times.firstIndex(where: { $0.scope == scope }) {
                times[known].sequence = max(times[known].sequence, sequence)
            } else {
                if times.count >= Self.timesMax { escalate() }
                times.append(TimePurge(scope: scope, sequence: sequence))
            }
        }
        assert(tags.count <= Self.tagsMax && times.count <= Self.timesMax, "a full table forgets")
    }

    /// Whether a purge covers the entry with that sequence number.
    func covers(_ entry: Entry, sequence: UInt64) -> Bool {
        guard sequence < sequenceMax else { return false }
        let head = entry.head
        return entry.withTags { tags in
            entry.withKey { key in
                covers(
                    sequence: sequence,
                    flags: head.flags,
                    createdSeconds: head.createdSeconds,
                    key: key,
                    tags: tags
                )
            }
        }
    }

    func covers(
        sequence: UInt64,
        flags: EntryHead.Flags,
        createdSeconds: UInt32,
        key: UnsafeRawBufferPointer,
        tags bytes: UnsafeRawBufferPointer
    ) -> Bool {
        if sequence >= sequenceMax { return false }
        if sequence < floor { return true }
        if !flags.contains(.index), covers(sequence, flags.storageClass, createdSeconds) {
            return true
        }
        guard !tags.isEmpty else { return false }
        var isCovered = false
        if let resource = ResourceTag.resource(in: key), !Mutant.marksOneVariant.isOn {
            var tag = ResourceTag.name(of: hasher.hash(resource))
            let purged = tags[tag.withUTF8 { hash(UnsafeRawBufferPointer($0)) }]
            isCovered = purged.map { sequence < $0 } ?? false
        }
        TagList.forEach(in: bytes) { tag in
            if let purged = tags[hash(tag)], sequence < purged { isCovered = true }
        }
        return isCovered
    }

    /// Whether a purge by class or time covers the entry.
    private func covers(
        _ sequence: UInt64,
        _ storageClass: StorageClass,
        _ createdSeconds: UInt32
    ) -> Bool {
        if sequence < classFloors[Int(storageClass.rawValue)] { return true }
        return times.contains {
            sequence < $0.sequence && $0.scope.covers(storageClass, createdSeconds: createdSeconds)
        }
    }

    /// Whether a purge of everything covers an entry with that sequence number.
    ///
    /// A full table counts its forgotten purges as one of everything.
    func coversAll(before sequence: UInt64) -> Bool { sequence < floor }

    /// Drops purges whose record has left the log; the records that they covered left before it.
    mutating func forget(upTo sequence: UInt64) {
        if Mutant.forgetsPurgesEarly.isOn { tags = [:] }
        if !tags.isEmpty { tags = tags.filter { $0.value > sequence } }
        times.removeAll { $0.sequence <= sequence }
    }

    private mutating func escalate() {
        if !Mutant.escalatesNothing.isOn { floor = sequenceMax }
        newest?.raiseForEverything(to: sequenceMax)
        tags.removeAll()
        times.removeAll()
    }

    private func hash(_ tag: UnsafeRawBufferPointer) -> UInt64 { hasher.hash(tag).identity }
}
