import Platform

/// The state of one disk shard that readers, the engine and the writer share, in the shard's mutex.
///
/// Invariants:
/// 1. A queued place names a node that is queued or being written, and no two places name one node.
/// 2. A place on disk names a segment that is open or sealed, below its `recordsEnd`.
/// 3. `bodies` holds a file for exactly the places flagged `.jumbo`.
struct ShardState: ~Copyable {
    enum Condition: UInt8, Sendable { case working, failed, closed }

    let settings: ShardSettings
    var index = DiskIndex()
    var queue: WriteQueue
    var segments = Slab<SegmentInfo>()
    var purges: PurgeTable
    /// Tags that were marked stale.
    ///
    /// Marks are never dropped: an entry in memory may be older than any record here.
    var stale: PurgeTable
    var bodies: [UInt64: JumboFile] = [:]
    /// The files of bodies that could not be unlinked, with the room that they still take.
    var leftBodies: [(path: String, bytes: Int)] = []
    var reads: [UInt64: JoinedRead] = [:]
    var nextSequence: UInt64 = 1
    var condition = Condition.working
    /// Whether the shard is closed because its directory was deleted or replaced.
    var hasLostDirectory = false
    /// The size of the largest entry, body included, in the present capacity.
    var entryBytesMax: Int
    /// Whether the capacity has room for a segment.
    var hasCapacity = true
    /// Whether a record that removes everything stands for all purges until the device works again.
    var purgesEverything = false
    var counters = DiskStatistics()
    /// The deadline for writing the queue, on the machine's monotonic clock; 0 if nothing is
    /// queued.
    var flushDeadline: UInt64 = 0
    /// Accepted entries that could not be written.
    var lostEntries = 0
    /// Those of them that a flush has reported.
    var reportedLosses = 0
    /// Whether a removal was written, or a segment was unlinked with its entries, that the device has
    /// not confirmed.
    var hasUnsynchronizedRemoval = false
    private var isWriteRequested = false

    init(
        _ settings: ShardSettings,
        entryBytesMax: Int,
        newestMark: NewestMark = NewestMark()
    ) {
        self.settings = settings
        self.entryBytesMax = entryBytesMax
        queue = WriteQueue(bytesMax: settings.queueBytesMax, oversize: settings.oversize)
        purges = PurgeTable(hasher: settings.hasher)
        stale = PurgeTable(hasher: settings.hasher, newest: newestMark)
    }

    /// When a change requires the lane to run.
    enum Wake: Hashable, Sendable {
        case none
        case now
        case at(nanoseconds: UInt64)
    }

    // MARK: Changes

    mutating func store(_ entry: Entry, body: JumboFile?) -> StoreOutcome {
        let head = entry.head
        if let reason = admit(head, body: body) {
            if !Mutant.keepsCopyOfRefused.isOn { _ = dropCopies(of: head.hash) }
            if reason == .queueFull { counters.queueOverflows += 1 } else { counters.refusals += 1 }
            return .refused(reason)
        }
        let sequence = takeSequence()
        let node = queue.push(
            .entry(entry, body),
            hash: head.hash,
            sequence: sequence,
            sizeBytes: entry.sizeBytes,
            coversOlderRecord: false
        )
        var flags = RecordPlace.Flags(head.flags.subtracting(.jumbo), isRaw: false)
        if let body {
            flags.insert(.jumbo)
            body.note(sequence: sequence)
        }
        let old = index.set(head.hash.identity, to: RecordPlace(queueNode: node, flags: flags))
        queue.setOlder(supersede(old, of: head.hash.identity, by: body), under: node)
        noteIndex(of: entry)
        assert(index.place(of: head.hash.identity).queueNode == node, "found in the queue")
        assert((bodies[head.hash.identity] != nil) == (body != nil), "3: bodies")
        return .stored
    }

    /// Keeps the index in the log that leads to the entry, if it is a variant: without it nobody
    /// finds the variant.
    private mutating func noteIndex(of entry: Entry) {
        let resource = entry.withKey { key in
            ResourceTag.resource(in: key).map { settings.hasher.hash($0) }
        }
        if let resource { index.noteNeed(of: resource.identity) }
    }

    /// Removes the key's copies; returns `false` if there were none.
    mutating func dropCopies(of hash: KeyHash) -> Bool {
        let old = index.remove(hash.identity)
        guard !old.isNone else { return false }
        guard condition != .closed else {
            // The files may belong to another cache by now, so they stay.
            bodies[hash.identity] = nil
            return true
        }
        let older = supersede(old, of: hash.identity, by: nil)
        if older.isOnDisk { pushTombstone(hash, over: older) } else { older.body?.doom() }
        assert(index.place(of: hash.identity).isNone && bodies[hash.identity] == nil, "3: bodies")
        return true
    }

    mutating func pushTombstone(
        _ hash: KeyHash,
        over older: WriteQueue.OlderCopy = .init(isOnDisk: true, body: nil)
    ) {
        guard condition != .closed, !Mutant.writesNoTombstones.isOn else { return }
        let node = queue.push(
            .tombstone,
            hash: hash,
            sequence: takeSequence(),
            sizeBytes: 0,
            coversOlderRecord: true
        )
        queue.setOlder(older, under: node)
    }

    mutating func takeSequence() -> UInt64 {
        defer { nextSequence += 1 }
        return nextSequence
    }

    /// Whether the record is worth writing again because it was read here.
    ///
    /// That of a large body is small, and worth it for one use, or if its body was spared.
    func isWorthKeeping(_ place: RecordPlace, of identity: UInt64) -> Bool {
        guard place.flags.contains(.jumbo), !Mutant.forgetsSparedBodies.isOn else {
            return place.frequency >= RecordPlace.frequencyToKeep
        }
        return place.frequency > 0 || bodies[identity].map { $0.age > $0.sequence } ?? false
    }

    /// Takes the room in the queue, and the file; returns the reason if it refuses the entry instead.
    private func admit(_ head: EntryHead, body: JumboFile?) -> StoreOutcome.Reason? {
        switch condition {
        case .closed: return .closed
        case .failed: return .deviceFailed
        case .working: break
        }
        guard hasCapacity else { return .notAdmitted }
        if head.isMemoryOnly, !Mutant.admitsMemoryOnlyToDisk.isOn { return .notAdmitted }
        let bodyBytes = body?.reference.rawCount ?? 0
        let around = head.entrySizeBytes - head.rawCount + recordUnitBytes
        if head.entrySizeBytes + bodyBytes > entryBytesMax { return .tooLarge }
        if around + BodyReference.sizeBytes > settings.recordBytesMax { return .tooLarge }
        guard queue.takeRoom(for: head.entrySizeBytes) else { return .queueFull }
        // This check is last, because it adopts the file: the file of a refused body must stay
        // doomed.
        if let body, !body.adopt(by: head.hash) {
            queue.giveBackRoom(for: head.entrySizeBytes)
            return .notAdmitted
        }
        return nil
    }

    /// Handles the copy that `old` pointed to; returns the key's older copy that may be on disk.
    private mutating func supersede(
        _ old: RecordPlace,
        of identity: UInt64,
        by body: JumboFile?
    ) -> WriteQueue.OlderCopy {
        var oldBody: JumboFile?
        if old.flags.contains(.jumbo) || body != nil {
            oldBody =
                body.map { bodies.updateValue($0, forKey: identity) }
                ?? bodies.removeValue(forKey: identity)
        }
        guard old.isQueued, queue[old.queueNode].state == .queued else {
            return .init(isOnDisk: !old.isNone, body: oldBody)
        }
        let older = queue.cancel(old.queueNode)
        // The node is never written, so only a record on disk, or the new node, may need its body.
        if oldBody !== older.body, oldBody !== body { oldBody?.doom() }
        return older
    }

    // MARK: When to write

    /// Returns when the lane must run after a change.
    mutating func wakeAfterChange() -> Wake {
        guard !queue.isEmpty, condition == .working else { return .none }
        if queue.bytes >= settings.batchBytes {
            guard !isWriteRequested else { return .none }
            isWriteRequested = true
            return .now
        }
        guard flushDeadline == 0 else { return .none }
        flushDeadline = monotonicNanoseconds() + settings.flushNanoseconds
        return .at(nanoseconds: flushDeadline)
    }

    /// Returns when the lane must run after its turn.
    ///
    /// A lane that was woken too early has no other appointment.
    mutating func wakeAfterTurn(retryAt: UInt64) -> Wake {
        switch condition {
        case .closed: return .none
        case .failed: return .at(nanoseconds: retryAt)
        case .working:
            let wake = wakeAfterChange()
            guard wake == .none, flushDeadline != 0 else { return wake }
            return .at(nanoseconds: flushDeadline)
        }
    }

    /// Clears the request to write, because the lane is running now.
    mutating func noteWriting() { isWriteRequested = false }

    #if ENGINE_CHECKS
        borrowing func checkInvariants() {
            index.checkInvariants()
            queue.checkInvariants()
            var nodes: Set<Int> = []
            var jumbos: Set<UInt64> = []
            index.forEach { slot in
                if slot.place.flags.contains(.jumbo) { jumbos.insert(slot.identity) }
                guard slot.place.isQueued else {
                    let info = segments[slot.place.segment]
                    precondition(info.state == .open || info.state == .sealed, "2: state")
                    precondition(slot.place.offset < info.recordsEnd, "2: end")
                    return
                }
                let node = queue[slot.place.queueNode]
                precondition(node.state == .queued || node.state == .writing, "1: state")
                precondition(node.hash.identity == slot.identity, "1: identity")
                precondition(nodes.insert(slot.place.queueNode).inserted, "1: shared")
            }
            precondition(jumbos == Set(bodies.keys), "3: bodies")
        }
    #endif
}
