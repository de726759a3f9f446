import Synchronization

/// The last steps of an opening, after the log has been replayed.
extension DiskShard {
    /// Assigns the files of large bodies to their entries.
    ///
    /// An entry without its file is removed, and a file without an entry is unlinked.
    func adoptBodies(_ names: [String], _ replay: inout Replay) {
        let files = Set(names.compactMap(BodyFileFormat.fileID(named:)))
        var jumbos: [(identity: UInt64, place: RecordPlace)] = []
        state.withLock { state in
            state.index.forEach { slot in
                guard slot.place.flags.contains(.jumbo) else { return }
                jumbos.append((slot.identity, slot.place))
            }
        }
        var used: Set<UInt64> = []
        for (identity, place) in jumbos {
            let known = readReference(identity, place)
            guard let (hash, reference, sequence) = known, files.contains(reference.fileID),
                hasWholeFile(reference), used.insert(reference.fileID).inserted
            else {
                // With a tombstone: if the fault is temporary, a later opening must not undo a
                // removal.
                state.withLock { state in
                    _ = state.dropCopies(of: KeyHash(placement: 0, identity: identity))
                }
                replay.report.damaged += 1
                continue
            }
            let body = makeBody(reference)
            body.note(sequence: sequence)
            _ = body.adopt(by: hash)
            ledger.addExisting(bodyBytes: body.occupiedBytes)
            state.withLock { $0.bodies[identity] = body }
        }
        for file in files.subtracting(used) where !Mutant.leavesUnownedBodies.isOn {
            unlinkUnowned(settings.directory + "/" + BodyFileFormat.name(file))
        }
    }

    /// Unlinks the file of a body without an entry; one that cannot be unlinked keeps its room, and is
    /// tried again before anything else makes room.
    private func unlinkUnowned(_ path: String) {
        guard let bytes = (try? volume.size(ofPath: path)).map(DiskLedger.bodyFileBytes) else {
            // A link or a directory takes no room of this cache.
            try? volume.unlink(path)
            return
        }
        ledger.addExisting(bodyBytes: bytes)
        try? unlinkBody(path, releasing: bytes)
    }

    private func readReference(
        _ identity: UInt64,
        _ place: RecordPlace
    ) -> (KeyHash, BodyReference, UInt64)? {
        let lease = state.withLock { state -> ReadLease? in
            guard case .onDisk(let lease) = state.lookUp(identity) else { return nil }
            return lease
        }
        guard let lease else { return nil }
        defer { state.withLock { $0.giveBack(lease) } }
        guard
            case .entry(let entry, let sequence, let reference?) =
                RecordReader(volume: volume).read(lease, .waits)
        else { return nil }
        return (entry.head.hash, reference, sequence)
    }

    private func hasWholeFile(_ reference: BodyReference) -> Bool {
        let path = settings.directory + "/" + BodyFileFormat.name(reference.fileID)
        do throws(FileFault) {
            let file = try volume.open(path, .reading)
            defer { volume.close(file) }
            return try volume.size(file) == reference.fileBytes || Mutant.adoptsBodiesUnseen.isOn
        } catch {
            // Any other refusal says nothing about the file, so it is kept; a later read checks it.
            return !error.provesAbsence
        }
    }

    /// Empties the shard and records this in the log.
    ///
    /// A device that returns the unreadable data later must not bring back any entry.
    func distrustEverything(_ fault: FileFault, _ replay: inout Replay) {
        replay.report.readErrors += 1
        replay.report.notes.append(
            "\(settings.directory) failed at the opening (\(fault.text)); its entries are lost"
        )
        state.withLock { $0.counters.readErrors += 1 }
        // It fails only in a closed shard, which reads and writes nothing.
        _ = try? forgetAll(in: .everything)
    }

    /// Removes the entries of the last session.
    func endSession() {
        if Mutant.keepsSessionEntries.isOn { return }
        guard state.withLock({ $0.hasEntries(of: .session) }) else { return }
        _ = try? forgetAll(in: .storageClass(.session))
    }

    /// Continues the newest segment if no other record can follow its records.
    func continueLog(_ segment: LogWriter.OpenSegment?) {
        guard let segment, order.last == segment.slot else { return }
        order.removeLast()
        state.withLock { state in
            assert(state.segments[segment.slot].state == .sealed, "it was replayed")
            assert(state.segments[segment.slot].recordsEnd <= segment.position, "behind them")
            state.segments[segment.slot].state = .open
        }
        writer.segment = segment
    }
}

extension ShardState {
    func hasEntries(of kept: StorageClass) -> Bool {
        var isFound = false
        index.forEach { if $0.place.storageClass == kept { isFound = true } }
        return isFound
    }
}
