/// A large body that is being written to disk and is readable while it grows.
///
///     growing ──append──▶ growing ──finish──▶ finished
///        ├──no room / a failure / a closed shard──▶ full ──abandon──▶ abandoned
///        └──abandon──▶ abandoned
///
/// In the phase `full` the appended bytes stay readable until the last holder releases the writer.
///
/// The actor runs on a lane of the I/O pool, so it may wait for the device. Appends must not
/// overlap: one flight writes, any number of followers read.
package actor BodyWriter {
    private enum Phase { case growing, full, finished, abandoned }

    private nonisolated let shard: DiskShard
    private nonisolated let lane: IOLane
    private var file: BodyFileWriter
    private var phase = Phase.growing
    private var reservedBytes: Int
    /// The space that the complete file is expected to occupy at most.
    private let fileBytesMax: Int
    private var finished: DiskBody?

    /// The step in which room is reserved from the capacity.
    private static let reservationBytes = 1 << 20

    init(
        _ shard: DiskShard,
        _ file: consuming BodyFileWriter,
        reservedBytes: Int,
        fileBytesMax: Int
    ) {
        self.shard = shard
        self.file = file
        self.reservedBytes = reservedBytes
        self.fileBytesMax = fileBytesMax
        lane = shard.pool.makeLane()
    }

    deinit {
        switch phase {
        case .growing, .full: break
        case .finished, .abandoned: return
        }
        let (path, volume, bytes) = (file.path, shard.volume, reservedBytes)
        // The last holder may be an event loop.
        let open = file.takeOpenFile()
        shard.pool.submitClosing { [weak shard = shard] in
            if let open { volume.close(open) }
            if let shard {
                try? shard.unlinkBody(path, releasing: bytes)
            } else {
                try? volume.unlink(path)
            }
        }
    }

    package nonisolated var unownedExecutor: UnownedSerialExecutor {
        lane.asUnownedSerialExecutor()
    }

    /// Appends bytes; throws if they do not fit, and then accepts no more.
    ///
    /// If the device does not take them in time, they may yet be written; nothing may be appended to
    /// them.
    package nonisolated func append(_ bytes: ByteChunk) async throws {
        try await shard.watch.call { [self] in try await appendOnLane(bytes) }
    }

    private func appendOnLane(_ bytes: ByteChunk) async throws {
        let needed = file.fileBytesMax(adding: bytes.count)
        try checkGrowing()
        guard shard.mayWrite else {
            phase = .full
            throw DiskShard.closed
        }
        do { try shard.checkBody(bytes: file.rawCount + bytes.count) } catch {
            phase = .full
            throw error
        }
        if needed > reservedBytes {
            let share = shard.ledger.balance.capacityBytes / 16
            let usual = min(share, Self.reservationBytes, fileBytesMax - reservedBytes)
            let step = max(needed - reservedBytes, usual)
            let hasRoom = await shard.reserveBodyDraining(step)
            guard phase == .growing else {
                if hasRoom { shard.ledger.releaseBody(step) }
                throw Self.notGrowing
            }
            guard hasRoom else {
                phase = .full
                throw shard.mayWrite ? DiskShard.noRoomForBody : DiskShard.closed
            }
            reservedBytes += step
        }
        assert(needed <= reservedBytes, "room is reserved before it is used")
        do throws(FileFault) { try file.append(bytes) } catch {
            phase = .full
            throw unwritable(error)
        }
    }

    /// Returns the appended bytes at `range`, or a first part of them.
    package nonisolated func read(_ range: Range<Int>) async throws -> ByteChunk {
        try await shard.watch.call(isPatient: true) { [self] in try await readOnLane(range) }
    }

    private func readOnLane(_ range: Range<Int>) async throws -> ByteChunk {
        if let finished { return try await finished.read(range) }
        if phase != .full { try checkGrowing() }
        do throws(FileFault) {
            if let bytes = try file.read(range) { return bytes }
        } catch { throw DiskBody.unreadable(file.path, error) }
        throw DiskBody.damaged(file.path)
    }

    /// Completes the body, so that an entry can use it.
    ///
    /// If no entry takes the body by `DiskTier.enqueue(_:body:)`, its file is unlinked with the
    /// last reference. After a failure the appended bytes stay readable, as after one of `append`.
    package nonisolated func finish() async throws -> DiskBody {
        try await shard.watch.call { [self] in try await finishOnLane() }
    }

    private func finishOnLane() throws -> DiskBody {
        try checkGrowing()
        do throws(FileFault) {
            let reference = try file.finish(shard.settings.durability)
            phase = .finished
            let bodyFile = shard.makeBody(reference)
            bodyFile.doom()
            assert(bodyFile.occupiedBytes <= reservedBytes, "room is reserved before it is used")
            shard.ledger.releaseBody(reservedBytes - bodyFile.occupiedBytes)
            shard.noteWritten(bodyFile.occupiedBytes)
            let body = DiskBody(bodyFile)
            finished = body
            return body
        } catch {
            phase = .full
            throw unwritable(error)
        }
    }

    /// Gives up the body and unlinks its file at once; behind a device that hangs, with the last
    /// reference.
    package nonisolated func abandon() async {
        try? await shard.watch.call { [self] in await abandonOnLane() }
    }

    private func abandonOnLane() {
        guard phase == .growing || phase == .full else { return }
        phase = .abandoned
        file.close()
        try? shard.unlinkBody(file.path, releasing: reservedBytes)
    }

    private func checkGrowing() throws { guard phase == .growing else { throw Self.notGrowing } }

    private static var notGrowing: CacheError {
        CacheError(.storageFailed, detail: "The body was already finished or abandoned")
    }

    private func unwritable(_ fault: FileFault) -> CacheError {
        CacheError(.storageFailed, detail: "Cannot write the body \(file.path): \(fault.text)")
    }
}
