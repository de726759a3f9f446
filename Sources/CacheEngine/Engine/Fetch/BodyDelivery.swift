import HTTPCaching

/// Delivers one body to its readers while it arrives from the origin, and stores it.
struct BodyDelivery {
    /// The fetch that the delivery is part of.
    let fetch: FlightFetch
    let context: FetchContext
    let body: PendingBody
    let arriving: MeasuredBody
    let chain: BodyChain

    private var services: Services { fetch.services }

    /// Returns whether the whole body arrived.
    func run() async -> Bool {
        let hook = StoreHook(services: services, context: context)
        let builder = body.storage == .none ? nil : await hook.entry(of: body)
        let entry = FetchedEntry(services: services, context: context, body: body)
        var keeper = BodyKeeper(services, context.asked.request, body, chain, builder)
        defer { keeper.release() }
        fetch.progress.reading()
        if !keeper.isKeeping { await pass(entry) }
        // The last piece, which the length tells, is held back until the body is stored and the
        // flight has left its desk: a reader of the whole body that asks again finds it stored, and
        // no flight to join.
        var last: ByteChunk?
        var joint = ChunkJoint()
        do {
            var total = 0
            while let piece = try await arriving.next() {
                // Pieces that wait already come also after a cancellation.
                try Task.checkCancellation()
                fetch.progress.advance()
                total += piece.count
                let joined = joint.join(piece)
                if keeper.isKeeping { await keep(piece, joined, &keeper, entry) }
                if let overrun = last.take() { chain.append(overrun) }
                if total == body.origin.expectedCount {
                    // Only the end follows: it needs no room, and comes also if no reader needs more.
                    if keeper.isKeeping { last = piece } else { chain.append(piece) }
                    continue
                }
                chain.append(piece, joined: joined)
                if keeper.isKeeping, chain.hasRoom { continue }
                guard await makeRoom(&keeper, entry) else {
                    arriving.cancel()
                    chain.fail(CancellationError())
                    await keeper.abandon()
                    return false
                }
            }
            if total != body.origin.expectedCount, !Mutant.endsCutBodiesWhole.isOn {
                // Some sequences answer a cancellation with their end, also in the middle.
                try Task.checkCancellation()
            }
            assert(total == body.origin.expectedCount ?? total, "as long as announced")
            assert(total == keeper.bytesInMemory ?? total, "each piece is kept once")
        } catch {
            breakOff(after: last, error)
            await keeper.abandon()
            return false
        }
        if let builder { await store(keeper.place, builder, entry) }
        end(with: last)
        return true
    }

    /// Keeps one more piece for the store, or delivers the rest of the body without keeping it.
    private func keep(
        _ piece: ByteChunk,
        _ joined: ByteChunk?,
        _ keeper: inout BodyKeeper,
        _ entry: FetchedEntry
    ) async {
        fetch.progress.storing(true)
        defer { fetch.progress.storing(false) }
        await keeper.keep(piece, joined: joined)
        if keeper.isTooLarge { fetch.noteTooLarge(body) }
        if !keeper.isKeeping { await pass(entry) }
    }

    /// Stores the body that was kept, if it was.
    private func store(
        _ place: BodyKeeper.Place?,
        _ builder: EntryBuilder,
        _ entry: FetchedEntry
    ) async {
        fetch.progress.storing(true)
        defer { fetch.progress.storing(false) }
        if let place { await entry.store(place, builder) }
        await services.tiers.settle(body.key.hash)
    }

    /// Takes the flight from its desk, and delivers the last piece.
    private func end(with last: ByteChunk?) {
        fetch.withdraw(body)
        if let last { chain.append(last) }
        chain.finish()
    }

    /// Gives the readers an error in place of the rest; a body that broke off is not stored.
    ///
    /// The flight leaves its desk first: a later request asks for itself, also while the file of this
    /// body is being removed.
    private func breakOff(after last: ByteChunk?, _ error: any Error) {
        arriving.cancel()
        if let last { chain.append(last) }
        let error = services.supervisor.isOpen ? error : CacheError.cacheShutDown
        if fetch.progress.noteBodyFailure() {
            services.recorder.originFailed(error, context.asked.request)
        }
        fetch.withdraw(body)
        chain.fail(error)
    }

    /// Delivers the rest of the body without keeping it.
    private func pass(_ entry: FetchedEntry) async {
        fetch.progress.storing(true)
        await entry.endReplaced()
        fetch.progress.storing(false)
        chain.pass()
    }

    /// Waits until there is room for more; returns `false` if no more is wanted.
    ///
    /// While memory is short, a body that is kept for the store in memory moves to a file, or waits
    /// for its readers. If that takes too long, it is kept no longer.
    private func makeRoom(_ keeper: inout BodyKeeper, _ entry: FetchedEntry) async -> Bool {
        guard keeper.isKeeping else { return await waitForReaders() }
        fetch.progress.storing(true)
        await keeper.moveToFile()
        fetch.progress.storing(false)
        if keeper.isOnDisk { return true }
        if keeper.isKeeping {
            guard await waitForReaders() else { return false }
            guard chain.isOverdue else { return true }
            keeper.giveUp()
        }
        await pass(entry)
        return await waitForReaders()
    }

    /// Waits for the readers; returns `false` if none needs more.
    private func waitForReaders() async -> Bool {
        await withTaskCancellationHandler {
            await chain.waitForRoom()
        } onCancel: {
            chain.stopWaiting()
        }
    }
}
