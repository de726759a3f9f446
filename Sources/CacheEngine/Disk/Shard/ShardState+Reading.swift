/// The result of a look-up in the shard's state.
enum Found: Sendable {
    case nothing
    case queued(Entry, JumboFile?, DiskToken)
    case onDisk(ReadLease)
}

/// The right to read one record; its segment is not reused before the lease is returned.
struct ReadLease: Sendable {
    let place: RecordPlace
    let identity: UInt64
    let file: OpenFile
    let seal: SegmentSeal
    let generation: UInt64
    let readBytes: Int
    let purgeSequence: UInt64

    var token: DiskToken {
        DiskToken(location: place.location, generation: generation, purgeSequence: purgeSequence)
    }
}

/// Identifies the copy of an entry that a read returned.
///
/// The copy is current as long as no other one replaced it and no removal covered it.
package struct DiskToken: Hashable, Sendable {
    let location: UInt64
    /// The segment's generation, or the sequence number of a queued entry.
    let generation: UInt64
    let purgeSequence: UInt64

    /// Whether the copy waits in the queue of writes.
    var isQueued: Bool { location == .max }

    /// The segment of a copy that is written.
    var segment: Int { RecordPlace(bits: location).segment }
}

/// Readers of one key that share one read of the device.
struct JoinedRead {
    let location: UInt64
    let generation: UInt64
    /// The waits of those that joined the read.
    var waits: [DiskWatch.Number]
}

/// An entry as read from disk, not yet compared with a reader's key.
struct LoadedEntry: Sendable {
    let entry: Entry
    let body: JumboFile?
    let sequence: UInt64
    let token: DiskToken
}

/// The result of a read that may wait for the device.
enum LoadResult: Sendable {
    case loaded(LoadedEntry)
    /// There is no entry, or none that can be read.
    case nothing
    /// Too many reads wait: the entry was not looked at.
    case refused
    /// Another copy replaced the entry, whose body is gone.
    case superseded
    /// The device did not answer in time, or the task was cancelled: there may be an entry.
    case abandoned
}

extension ShardState {
    /// Finds the newest copy.
    ///
    /// The caller must return the lease in the result, and count the use of a copy that it takes.
    mutating func lookUp(_ identity: UInt64) -> Found {
        let place = index.place(of: identity)
        guard !place.isNone, condition != .closed else { return .nothing }
        if place.isQueued { return queued(at: place.queueNode) }
        segments[place.segment].leases += 1
        let info = segments[place.segment]
        assert(info.state == .open || info.state == .sealed, "the segment has live records")
        assert(place.offset < info.recordsEnd, "a place inside the segment's records")
        return .onDisk(
            ReadLease(
                place: place,
                identity: identity,
                file: info.file,
                seal: info.seal,
                generation: info.generation,
                readBytes: min(place.recordBytes, info.recordsEnd - place.offset),
                purgeSequence: purges.sequenceMax
            )
        )
    }

    private func queued(at node: Int) -> Found {
        let node = queue[node]
        assert(node.state == .queued || node.state == .writing, "a place names a live node")
        guard case .entry(let entry, let body)? = node.content,
            !isPurged(entry, sequence: node.sequence)
        else { return .nothing }
        let token = DiskToken(
            location: .max,
            generation: node.sequence,
            purgeSequence: purges.sequenceMax
        )
        return .queued(entry, body, token)
    }

    mutating func giveBack(_ lease: ReadLease) {
        segments[lease.place.segment].leases -= 1
        assert(segments[lease.place.segment].leases >= 0)
    }

    /// Returns the token of the newest copy; `nil` if there is no copy.
    func token(of identity: UInt64) -> DiskToken? {
        let place = index.place(of: identity)
        guard !place.isNone else { return nil }
        return DiskToken(
            location: place.isQueued ? .max : place.location,
            generation: place.isQueued
                ? queue[place.queueNode].sequence : segments[place.segment].generation,
            purgeSequence: purges.sequenceMax
        )
    }

    /// Whether the key has another copy than the leased one.
    func isSuperseded(_ lease: ReadLease) -> Bool {
        guard let token = token(of: lease.identity) else { return false }
        return token.location != lease.place.location || token.generation != lease.generation
    }

    /// Whether the segment of a copy was reclaimed after the copy was found.
    ///
    /// The purges that left the log with it are forgotten, and one of them may cover the copy: only
    /// another look-up can tell.
    func isReclaimed(_ token: DiskToken) -> Bool {
        if Mutant.trustsReclaimedCopies.isOn { return false }
        let info = segments[token.segment]
        return info.generation != token.generation
            || info.state != .open && info.state != .sealed
    }

    /// Removes a record that cannot be read, if it is still the newest.
    ///
    /// With a tombstone: if the fault is temporary, the record must not come back after a removal.
    mutating func dropUnreadable(_ lease: ReadLease, hash: KeyHash) {
        guard token(of: lease.identity)?.location == lease.place.location,
            segments[lease.place.segment].generation == lease.generation
        else { return }
        _ = dropCopies(of: hash)
    }
}

extension ShardState {
    /// Returns the file that a record refers to, if the record is the newest and the file is
    /// readable.
    mutating func usableBody(_ identity: UInt64, _ reference: BodyReference) -> JumboFile? {
        guard let body = bodies[identity], body.reference == reference else { return nil }
        guard body.isDamaged else { return body }
        counters.recordsDamaged += 1
        _ = dropCopies(of: KeyHash(placement: 0, identity: identity))
        return nil
    }
}
