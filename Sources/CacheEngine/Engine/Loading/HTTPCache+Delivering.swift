import HTTPCaching

/// Brings a body from the origin to its readers and into the store.
extension HTTPCache {
    /// Where the bytes go besides the readers.
    private enum Keeping {
        case inMemory([ByteChunk])
        case nowhere
    }

    func deliver(_ delivery: Delivery, _ load: Load, _ watch: FlightWatch) async {
        let chain = delivery.chain
        let proposal = await proposal(for: delivery, load)
        var keeping = Keeping.nowhere
        if proposal != nil, delivery.storage != .none {
            keeping = .inMemory([])
        } else {
            chain.pass()
        }
        do {
            var total = 0
            while let piece = try await delivery.body.next() {
                watch.advance()
                total += piece.count
                chain.append(piece)
                keep(piece, total: total, in: &keeping, chain)
                if case .nowhere = keeping, await !roomOrReaders(chain) {
                    delivery.body.cancel()
                    chain.fail(CancellationError())
                    return
                }
            }
        } catch {
            // What broke off is no answer: it is not stored, and no reader takes it for whole.
            let error = supervisor.isOpen ? error : Self.shutDownError
            recorder.originFailed(error)
            chain.fail(error)
            return
        }
        if case .inMemory(let pieces) = keeping, !delivery.body.isOverlong, let proposal {
            await store(pieces, delivery, load, proposal)
        }
        chain.finish()
    }

    private func keep(
        _ piece: ByteChunk,
        total: Int,
        in keeping: inout Keeping,
        _ chain: BodyChain
    ) {
        guard case .inMemory(var pieces) = keeping else { return }
        keeping = .nowhere
        guard total <= tiers.entrySizeBytesMax else {
            recorder.refused(StoreRefusalReason("too-large"))
            chain.pass()
            return
        }
        pieces.append(piece)
        keeping = .inMemory(pieces)
    }

    /// Waits for the readers; false when there is nobody to deliver to.
    private func roomOrReaders(_ chain: BodyChain) async -> Bool {
        await withTaskCancellationHandler {
            await chain.waitForRoom()
        } onCancel: {
            chain.stopWaiting()
        }
    }

    // MARK: Storing

    private func store(
        _ pieces: [ByteChunk],
        _ delivery: Delivery,
        _ load: Load,
        _ proposal: StoreProposal
    ) async {
        var facts = delivery.facts
        facts.freshnessLifetimeSeconds = UInt32(clamping: proposal.lifetimeSeconds)
        var parts: PartialBody?
        var pieces = pieces
        if case .part(let range) = delivery.storage {
            guard
                let combined = await combine(
                    pieces,
                    range,
                    delivery,
                    with: load.selection.stored
                )
            else { return }
            pieces = combined.pieces
            parts = combined.parts
            if combined.parts.isComplete {
                facts.status = 200
                facts.flags.remove(.isPartial)
                parts = nil
            }
        }
        var fields = proposal.fields.section
        if parts == nil, delivery.storage != .whole {
            fields.remove("Content-Range")
            fields.set("Content-Length", String(pieces.reduce(0) { $0 + $1.count }))
        }
        let blueprint = EntryBlueprint(
            key: delivery.key,
            metadata: StoredResponse.metadata(
                facts: facts,
                fields: fields,
                userInfo: proposal.userInfo,
                parts: parts
            ),
            tags: TagList(proposal.tags) ?? TagList(),
            storageClass: proposal.storageClass,
            place: proposal.place,
            createdSeconds: delivery.origin.responseSeconds
        )
        guard blueprint.isEncodable else { return }
        note(tiers.store(blueprint.entry(body: pieces), since: load.ticket))
    }

    func note(_ outcome: StoreOutcome) {
        switch outcome {
        case .stored: recorder.counters.add(.stored)
        case .refused(let reason): recorder.refused(StoreRefusalReason(reason.rawValue))
        }
    }

    /// Joins a new part with those that are stored (RFC 9111 §3.4); nil when it is not worth it.
    private func combine(
        _ pieces: [ByteChunk],
        _ content: ContentRange,
        _ delivery: Delivery,
        with stored: StoredResponse?
    ) async -> (pieces: [ByteChunk], parts: PartialBody)? {
        guard let range = content.range,
            pieces.reduce(0, { $0 + $1.count }) == range.count
        else { return nil }
        var parts = PartialBody(bodySize: content.bodySize)
        guard let stored, let old = stored.parts,
            PartialBody.mayCombine(stored: stored.fields(), new: delivery.fields)
        else {
            // A whole response is worth more than a part of it.
            if let stored, !stored.facts.flags.contains(.isPartial) { return nil }
            return parts.add(content) == .added ? (pieces, parts) : nil
        }
        parts = old
        guard parts.add(content) == .added else { return nil }
        var combined: [ByteChunk] = []
        for part in parts.parts {
            for held in old.parts where part.contains(held.lowerBound) {
                let front =
                    held.lowerBound..<min(held.upperBound, max(range.lowerBound, held.lowerBound))
                if held.lowerBound < range.lowerBound, !front.isEmpty {
                    let bytes = try? await stored.body(old.storedRange(of: front)).collect()
                    guard let bytes else { return nil }
                    combined.append(bytes)
                }
            }
            if part.contains(range.lowerBound) { combined += pieces }
            for held in old.parts where part.contains(held.lowerBound) {
                let lower = max(held.lowerBound, range.upperBound)
                if held.upperBound > range.upperBound, lower < held.upperBound {
                    let back = lower..<held.upperBound
                    let bytes = try? await stored.body(old.storedRange(of: back)).collect()
                    guard let bytes else { return nil }
                    combined.append(bytes)
                }
            }
        }
        guard combined.reduce(0, { $0 + $1.count }) == parts.heldBytes else { return nil }
        return (combined, parts)
    }

    // MARK: The hook

    /// What will be stored, after the application's own hook; nil when it is not to be.
    private func proposal(for delivery: Delivery, _ load: Load) async -> StoreProposal? {
        let options = configuration.storing
        let proposal = StoreProposal(
            request: load.request,
            status: delivery.origin.status,
            fields: HeaderFields(delivery.fields),
            lifetimeSeconds: Int(delivery.facts.freshnessLifetimeSeconds),
            storageClass: load.policy.storageClass ?? options.storageClass,
            place: .everywhere,
            tags: tags(in: delivery.fields),
            userInfo: nil
        )
        guard let willStore = configuration.hooks.willStore else { return proposal }
        do {
            let changed = try await withTimeLimit(configuration.hooks.willStoreSecondsMax) {
                try await willStore(proposal)
            }
            if changed == nil { recorder.refused(StoreRefusalReason("hook")) }
            return changed
        } catch {
            recorder.hookFailed(error)
            return nil
        }
    }

    /// The tags that the answer itself names, by comma or space.
    private func tags(in fields: FieldSection) -> [String] {
        var tags: [String] = []
        for name in configuration.storing.tagFields {
            for line in fields.values(name) {
                for tag in line.split(whereSeparator: { $0 == "," || $0 == " " }) {
                    guard tags.count < configuration.storing.tagsMax else { return tags }
                    tags.append(String(tag))
                }
            }
        }
        return tags
    }

    /// Runs `work`, and gives up waiting for it after `seconds`.
    func withTimeLimit<Result: Sendable>(
        _ seconds: Double,
        _ work: @escaping @Sendable () async throws -> Result
    ) async throws -> Result {
        let race = Race<Result>()
        let working = supervisor.start {
            do { race.finish(.success(try await work())) } catch { race.finish(.failure(error)) }
        }
        let timing = supervisor.start { [clock] in
            guard (try? await clock.sleep(nanoseconds: Self.nanoseconds(seconds))) != nil else {
                return
            }
            let error = CacheError(.deadlineExceeded, detail: "Not done within \(seconds) seconds")
            race.finish(.failure(error))
        }
        defer {
            working.cancel()
            timing.cancel()
        }
        return try await race.result()
    }
}
