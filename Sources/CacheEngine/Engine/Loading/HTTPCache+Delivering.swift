import HTTPCaching

/// Brings a body from the origin to its readers and into the store.
extension HTTPCache {
    /// Where the bytes go besides the readers.
    private enum Keeping {
        case inMemory([ByteChunk])
        case onDisk(BodyWriter)
        case nowhere
    }

    func deliver(_ delivery: Delivery, _ load: Load, _ leading: Leading) async {
        let chain = delivery.chain
        let proposal = await proposal(for: delivery, load)
        var keeping = Keeping.nowhere
        if proposal != nil, delivery.storage != .none {
            keeping = .inMemory([])
        } else {
            chain.pass()
        }
        // Whoever has read the whole body and asks again is to find it stored, and no flight to join:
        // the last piece, where the length tells which it is, is given once both are so.
        var last: ByteChunk?
        do {
            var total = 0
            while let piece = try await delivery.body.next() {
                leading.watch.advance()
                total += piece.count
                await keep(piece, total: total, in: &keeping, delivery, proposal?.place)
                if let overrun = last.take() { chain.append(overrun) }
                if case .nowhere = keeping {
                    chain.append(piece)
                    if await hasRoom(chain) { continue }
                    delivery.body.cancel()
                    chain.fail(CancellationError())
                    return
                }
                if total == delivery.origin.expectedCount {
                    last = piece
                } else {
                    chain.append(piece)
                }
            }
        } catch {
            if let last { chain.append(last) }
            // What broke off is no answer: it is not stored, and no reader takes it for whole.
            let error = supervisor.isOpen ? error : Self.shutDownError
            recorder.originFailed(error)
            chain.fail(error)
            if case .onDisk(let writer) = keeping { await writer.abandon() }
            return
        }
        if let proposal { await store(keeping, delivery, load, proposal) }
        await leading.desk?.withdraw(leading.flight)
        if let last { chain.append(last) }
        chain.finish()
    }

    /// Adds a piece to what is kept; a failure to keep it is no business of the readers.
    private func keep(
        _ piece: ByteChunk,
        total: Int,
        in keeping: inout Keeping,
        _ delivery: Delivery,
        _ place: StoragePlace?
    ) async {
        do {
            switch keeping {
            case .nowhere: return
            case .onDisk(let writer): return try await writer.append(piece)
            case .inMemory(var pieces):
                // The array's only owner, so that appending copies nothing.
                keeping = .nowhere
                pieces.append(piece)
                guard total > tiers.gatheredBytesMax else { return keeping = .inMemory(pieces) }
                if place == .everywhere, delivery.storage == .whole,
                    let writer = try await spill(pieces, delivery)
                {
                    return keeping = .onDisk(writer)
                }
            }
            recorder.refused(StoreRefusalReason(StoreOutcome.Reason.tooLarge.rawValue))
        } catch {
            // What is on disk already stays for readers who are behind; it goes with the chain.
            recorder.storageFailed(error)
            keeping = .nowhere
        }
        delivery.chain.pass()
    }

    /// From memory to a file: readers who are behind read back from there.
    private func spill(_ pieces: [ByteChunk], _ delivery: Delivery) async throws -> BodyWriter? {
        let writer = try await tiers.beginBody(
            delivery.key.hash,
            expectedCount: delivery.origin.expectedCount
        )
        guard let writer else { return nil }
        for piece in pieces { try await writer.append(piece) }
        delivery.chain.spill { range in try await writer.read(range) }
        return writer
    }

    /// Waits for the readers; false when there is nobody to deliver to.
    private func hasRoom(_ chain: BodyChain) async -> Bool {
        await withTaskCancellationHandler {
            await chain.waitForRoom()
        } onCancel: {
            chain.stopWaiting()
        }
    }

    // MARK: Storing

    private func store(
        _ keeping: Keeping,
        _ delivery: Delivery,
        _ load: Load,
        _ proposal: StoreProposal
    ) async {
        switch keeping {
        case .nowhere: return
        case .onDisk(let writer):
            guard !delivery.body.isOverlong else { return await writer.abandon() }
            do {
                let body = try await writer.finish()
                let blueprint = blueprint(
                    delivery,
                    proposal,
                    delivery.facts,
                    proposal.fields.section
                )
                note(tiers.store(blueprint.entry(body: []), body: body, since: load.ticket))
            } catch {
                recorder.storageFailed(error)
            }
        case .inMemory(let pieces):
            guard !delivery.body.isOverlong else { return }
            guard case .part(let range) = delivery.storage else {
                let blueprint = blueprint(
                    delivery,
                    proposal,
                    delivery.facts,
                    proposal.fields.section
                )
                guard blueprint.isEncodable else { return }
                return note(tiers.store(blueprint.entry(body: pieces), since: load.ticket))
            }
            await store(part: pieces, range, delivery, load, proposal)
        }
    }

    private func store(
        part pieces: [ByteChunk],
        _ range: ContentRange,
        _ delivery: Delivery,
        _ load: Load,
        _ proposal: StoreProposal
    ) async {
        // What is stored by now, not what was when the fetch began.
        let held = await tiers.entry(delivery.key).flatMap { StoredResponse($0.0) }
        guard let combined = await combine(pieces, range, delivery, with: held) else { return }
        var facts = delivery.facts
        var fields = proposal.fields.section
        if combined.parts.isComplete {
            facts.status = 200
            facts.flags.remove(.isPartial)
            fields.remove("Content-Range")
            fields.set("Content-Length", String(combined.parts.heldBytes))
        }
        let parts = combined.parts.isComplete ? nil : combined.parts
        let blueprint = blueprint(delivery, proposal, facts, fields, parts)
        guard blueprint.isEncodable else { return }
        note(tiers.store(blueprint.entry(body: combined.pieces), since: load.ticket))
    }

    private func blueprint(
        _ delivery: Delivery,
        _ proposal: StoreProposal,
        _ facts: StoredFacts,
        _ fields: FieldSection,
        _ parts: PartialBody? = nil
    ) -> EntryBlueprint {
        var facts = facts
        let lifetimeSeconds = Self.ownLifetime(proposal.lifetimeSeconds)
        let isOwn = lifetimeSeconds != facts.freshnessLifetimeSeconds
        facts.freshnessLifetimeSeconds = lifetimeSeconds
        return EntryBlueprint(
            key: delivery.key,
            metadata: StoredResponse.metadata(
                facts: facts,
                fields: fields,
                userInfo: proposal.userInfo,
                ownLifetimeSeconds: isOwn ? lifetimeSeconds : nil,
                parts: parts
            ),
            tags: TagList(proposal.tags) ?? TagList(),
            storageClass: proposal.storageClass,
            place: proposal.place,
            createdSeconds: delivery.origin.responseSeconds
        )
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

    private static let tooManyTags = StoreRefusalReason("too-many-tags")

    /// What will be stored, after the application's own hook; nil when it is not to be.
    private func proposal(for delivery: Delivery, _ load: Load) async -> StoreProposal? {
        let options = configuration.storing
        // What cannot be found by all its tags could not be purged by them.
        guard let tags = tags(in: delivery.fields) else {
            recorder.refused(Self.tooManyTags)
            return nil
        }
        let proposal = StoreProposal(
            request: load.request,
            status: delivery.origin.status,
            fields: HeaderFields(delivery.fields),
            lifetimeSeconds: Int(delivery.facts.freshnessLifetimeSeconds),
            storageClass: load.policy.storageClass ?? options.storageClass,
            place: .everywhere,
            tags: tags,
            userInfo: nil
        )
        guard let willStore = configuration.hooks.willStore else { return proposal }
        do {
            let changed = try await withTimeLimit(configuration.hooks.willStoreSecondsMax) {
                try await willStore(proposal)
            }
            if changed == nil { recorder.refused(StoreRefusalReason("hook")) }
            guard TagList(changed?.tags ?? []) != nil else {
                recorder.refused(Self.tooManyTags)
                return nil
            }
            return changed
        } catch {
            recorder.hookFailed(error)
            return nil
        }
    }

    /// The tags that the answer itself names, by comma or space; nil when they are too many.
    private func tags(in fields: FieldSection) -> [String]? {
        var tags: [String] = []
        for name in configuration.storing.tagFields {
            for line in fields.values(name) {
                for tag in line.split(whereSeparator: { $0 == "," || $0 == " " }) {
                    guard tags.count < configuration.storing.tagsMax else { return nil }
                    tags.append(String(tag))
                }
            }
        }
        return TagList(tags) == nil ? nil : tags
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
