extension ShardState {
    /// Returns the next batch: the due nodes, or enough nodes for a full batch; empty if neither
    /// exists.
    mutating func takeBatch(below limit: UInt64, orBefore newest: UInt64) -> [WriteQueue.Taken] {
        guard let first = queue.firstSequence,
            first < limit || first < newest && queue.bytes >= settings.batchBytes
        else { return [] }
        return queue.take(bytesMax: settings.batchBytes)
    }

    mutating func noteRecord(_ flags: EntryHead.Flags, _ sequence: UInt64, in slot: Int) {
        if flags.contains(.purgeRecord) {
            let newest = max(segments[slot].purgeSequenceMax, sequence)
            segments[slot].purgeSequenceMax = newest
        }
        if !flags.isDisjoint(with: [.tombstone, .purgeRecord]) { hasUnsynchronizedRemoval = true }
        segments[slot].sequenceMin = min(segments[slot].sequenceMin, sequence)
        segments[slot].sequenceMax = max(segments[slot].sequenceMax, sequence)
    }

    /// Ends the writing of a node, and dooms the body it replaced unless that body is in use again.
    mutating func finishWriting(_ node: WriteQueue.Taken) {
        guard let replaced = queue.finish(node.node), !node.keeps(replaced),
            bodies[node.hash.identity] !== replaced
        else { return }
        replaced.doom()
    }

    /// Makes a written record the newest copy, unless a newer one has arrived meanwhile.
    mutating func settle(_ record: LogWriter.Placed, at place: RecordPlace) {
        switch record.item {
        case .node(let node):
            assert(queue[node.node].sequence == node.sequence, "the node is still this record's")
            let current = index.place(of: node.hash.identity)
            defer { finishWriting(node) }
            guard current.isQueued, current.queueNode == node.node else {
                if record.isOwnBody, let body = record.body { replace(body, by: current) }
                return
            }
            var place = place
            place.frequency = current.frequency
            _ = index.replace(node.hash.identity, with: place)
            if record.isOwnBody, let body = record.body {
                body.note(sequence: node.sequence)
                _ = body.adopt(by: node.hash)
                bodies[node.hash.identity] = body
            }
        case .reinsertion(let identity, let from):
            let current = index.place(of: identity)
            guard !current.isQueued, current.isSameLocation(as: from) else { return }
            _ = index.replace(identity, with: place)
            bodies[identity]?.note(sequence: record.head.sequence)
            counters.reinsertions += 1
        }
    }

    /// Handles the body of a record that was superseded while it was written.
    ///
    /// The body is needed until the newer record is written as well.
    private mutating func replace(_ body: JumboFile, by current: RecordPlace) {
        guard current.isQueued else { return body.doom() }
        queue.setReplacedBody(body, under: current.queueNode)
    }

    /// Handles items that could not be written: entries are lost, removals are tried again.
    mutating func giveUp(_ items: [WriteItem]) {
        var again: [Int] = []
        for item in items {
            guard case .node(let node) = item else {
                giveUpReinsertion(item)
                continue
            }
            guard case .entry = node.content else {
                again.append(node.node)
                continue
            }
            let current = index.place(of: node.hash.identity)
            finishWriting(node)
            lostEntries += 1
            guard current.isQueued, current.queueNode == node.node else { continue }
            _ = index.remove(node.hash.identity)
            if let body = bodies.removeValue(forKey: node.hash.identity) { body.doom() }
            // A part of the batch may have reached the disk, and an older record may be there.
            if !Mutant.leavesOldRecordOnFailure.isOn { pushTombstone(node.hash) }
        }
        queue.putBack(again)
    }

    /// Drops the entry: its old copy goes with the segment, and the new one may be incomplete on
    /// disk.
    private mutating func giveUpReinsertion(_ item: WriteItem) {
        guard case .reinsertion(let identity, let from) = item else { return }
        let current = index.place(of: identity)
        guard !current.isQueued, current.isSameLocation(as: from) else { return }
        _ = dropCopies(of: KeyHash(placement: 0, identity: identity))
    }
}
