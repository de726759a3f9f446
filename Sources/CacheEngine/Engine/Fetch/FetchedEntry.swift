import HTTPCaching

/// Stores the entry of a fetched response once its body is complete, or removes the older entry
/// that the response replaces without being kept.
struct FetchedEntry {
    let services: Services
    let context: FetchContext
    let body: PendingBody
    /// Whether the attempt was abandoned before its response arrived, so that no caller gets the
    /// response.
    var isGivenUp = false

    private var tiers: TieredStore { services.tiers }

    /// Stores a whole response whose body is complete; waits for nothing.
    ///
    /// - Returns: `false`, without a change, if the response is refused because of a removal, or the
    ///   body is too large to be copied here.
    func storeAtOnce(_ chunk: ByteChunk) -> Bool {
        guard body.storage == .whole, TieredStore.isCopiedInPlace(chunk.count) else { return false }
        let blueprint = body.builder.blueprint
        guard blueprint.isEncodable(bodyCount: chunk.count) else { return false }
        let entry = tiers.makeEntry(blueprint, body: CollectionOfOne(chunk))
        let outcome = tiers.store(entry, since: body.ticket)
        // Storing once more is refused again, and then ends an older entry, which is looked up first.
        if outcome == .refused(.removedMeanwhile) { return false }
        services.recorder.count(outcome, context.asked.request)
        return true
    }

    /// Stores the response with the body that was kept.
    nonisolated(nonsending) func store(_ place: BodyKeeper.Place, _ builder: EntryBuilder) async {
        var isOverlong = false
        if case .arriving(let arriving) = body.origin.body { isOverlong = arriving.isOverlong }
        await enterAsDecided(builder)
        switch place {
        case .onDisk(let writer):
            // Readers that lag behind still read from the file, which is unlinked after the last.
            guard !isOverlong else { return await endReplaced() }
            // The body lies in a file of its own, whose size the entry's head does not state.
            let blueprint = builder.blueprint
            guard blueprint.isEncodable(bodyCount: 0) else { return await endReplaced() }
            do {
                let file = try await writer.finish()
                let entry = tiers.makeEntry(blueprint, body: [])
                await note(tiers.store(entry, body: file, since: body.ticket))
            } catch {
                let reason = StoreRefusalReason(services.refusal(after: error))
                services.recorder.refused(reason, context.asked.request)
                await endReplaced()
            }
        case .inMemory(let pieces):
            guard !isOverlong || Mutant.storesOverlongBodies.isOn else {
                return await endReplaced()
            }
            if case .part(let range, let hasWholeHead) = body.storage {
                return await store(pieces, as: range, builder, hasWholeHead: hasWholeHead)
            }
            let blueprint = builder.blueprint
            guard blueprint.isEncodable(bodyCount: pieces.byteCount) else {
                return await endReplaced()
            }
            let entry = await tiers.makeEntry(blueprint, gathered: pieces)
            await note(tiers.store(entry, since: body.ticket))
        }
    }

    /// Enters the variant once more, as the hook has decided: an index that waits in memory is written,
    /// or made again if the memory has lost it meanwhile.
    nonisolated(nonsending) private func enterAsDecided(_ builder: EntryBuilder) async {
        guard let variance = body.variance, services.configuration.hooks.willStore != nil,
            !Mutant.leavesIndexesInMemory.isOn
        else { return }
        let registry = VariantRegistry(
            services: services,
            key: context.key,
            fields: context.asked.request.fields.section,
            ticket: body.ticket,
            storageClass: builder.storageClass,
            mayStayInMemory: builder.place == .memoryOnly,
            nonce: variance.index.nonce
        )
        _ = await registry.enter(variance.vary, flightKey: context.lookup.flightKey.hash)
    }

    /// Removes the stored response that this one replaces without being kept itself.
    ///
    /// An error that is not kept replaces nothing, and stored parts of this very version stay.
    nonisolated(nonsending) func endReplaced() async {
        // A POST has removed what was stored, and what has been stored since is newer.
        guard body.origin.status != 206, context.purpose != .post, body.isPermitted,
            !body.isOutdated,
            StatusFacts(body.origin.status).tellsOfTheResource || Mutant.endsByErrors.isOn
        else { return }
        if isLeft, context.purpose == .refresh { return await doubtStored() }
        outdateOlder()
        let isToldAsStored = body.storage != .none
        if context.policy.reads, let stored = context.found.stored {
            if isJoinable(stored), !Mutant.endsPartsOfTheSame.isOn { return }
            let selected = SelectedResponses(services: services, context: context)
            await selected.end(context.found.key) { await remove($0) }
        } else if !tiers.backing.isLookUpConclusive, isToldAsStored || !context.policy.reads {
            await remove(body.key)
        } else if await mustEnd(tiers.find(body.key)) {
            await remove(body.key)
        }
    }

    /// Whether what was found under the key is to be removed.
    ///
    /// Not without an entry: a removal also keeps fetches of other variants from being stored.
    private func mustEnd(_ found: TieredStore.Finding) -> Bool {
        switch found {
        case .entry(let entry, _): !(StoredResponse(entry).map(isJoinable) ?? false)
        case .nothing: false
        // A device that hangs would return it later.
        case .refused: !Mutant.takesSilenceForAbsence.isOn
        }
    }

    /// Whether the caller of the request stores the response.
    private var isLeft: Bool {
        body.storage != .none && context.asked.request.options.leavesStoring
    }

    /// Removes an entry; a caller that stores the response with the ticket of the fetch still may.
    nonisolated(nonsending) private func remove(_ key: RequestKey) async {
        if isLeft { tiers.removeStored(key) } else { await tiers.remove(key) }
    }

    /// Lets the next request ask the origin, because no caller is there to store this response.
    ///
    /// The stored response stays: for a condition, and for requests that accept any age.
    nonisolated(nonsending) private func doubtStored() async {
        guard let stored = context.found.stored else { return }
        var facts = stored.facts
        facts.flags.insert(.noCache)
        let blueprint = EntryBuilder(renewing: stored, facts: facts).blueprint
        let doubted = await tiers.renewed(stored.stored, as: blueprint)
        await tiers.replace(stored.stored, by: doubted, since: body.ticket, isShared: false)
    }

    /// Counts the outcome, and removes an entry that is older than the refused response.
    ///
    /// A removal during the fetch refuses the response after its readers were told that it is
    /// stored. An entry that another fetch has stored since the removal may be an older version of
    /// the resource. Only this entry is removed: a removal that also refused fetches under way
    /// could be provoked again and again, and the key would never be stored. A fetch that began after
    /// the removal still stores, unless its head is the older one. A response that a newer one has
    /// overtaken removes nothing. A stale entry stays, as a soft purge keeps it: the origin is asked
    /// before it is fresh again.
    nonisolated(nonsending) private func note(_ outcome: StoreOutcome) async {
        services.recorder.count(outcome, context.asked.request)
        guard outcome == .refused(.removedMeanwhile), !isGivenUp, !body.isOutdated,
            !Mutant.keepsTheOutdated.isOn
        else { return }
        outdateOlder()
        if await isStale(body.key) || body.isOutdated { return }
        tiers.removeStored(body.key)
    }

    /// Whether a stale response is stored under the key.
    nonisolated(nonsending) private func isStale(_ key: RequestKey) async -> Bool {
        guard let stored = await tiers.entry(key).flatMap({ StoredResponse($0.0) }),
            !Mutant.endsWhatIsStale.isOn
        else { return false }
        return !tiers.currentFacts(of: stored).isFresh(at: services.clock.nowSeconds)
    }

    /// Outdates the arrivals of the key that are older than this response, which is not kept.
    private func outdateOlder() {
        tiers.arrivals.outdate(
            body.key.hash,
            order: body.ticket.order,
            withVariants: body.variance == nil,
            except: body.ticket.arrival
        )
    }

    // MARK: Parts

    /// The most copies of stored parts for one that has arrived; others may be joined meanwhile.
    private static let copiesMax = 3

    /// Stores one part, joined with the parts that are already stored (RFC 9111 §3.4).
    nonisolated(nonsending) private func store(
        _ arrived: [ByteChunk],
        as content: ContentRange,
        _ builder: EntryBuilder,
        hasWholeHead: Bool
    ) async {
        guard arrived.byteCount == content.range?.count else {
            return services.recorder.refused(.invalidPart, context.asked.request)
        }
        for copies in 1...Self.copiesMax {
            // Begun before the look: a change of the key from now on outdates the copy.
            let copy = tiers.arrivals.beginCopy(of: body.key.hash)
            let made = await makeEntry(joining: arrived, content, builder, hasWholeHead)
            guard let entry = made else { return }
            var ticket = body.ticket
            ticket.arrival = copy
            let outcome = tiers.store(entry, since: ticket)
            guard outcome == .refused(.removedMeanwhile), copy.isOutdated, copies < Self.copiesMax
            else { return services.recorder.count(outcome, context.asked.request) }
        }
    }

    /// The entry of the part and the stored ones; `nil` if the part must not be stored.
    nonisolated(nonsending) private func makeEntry(
        joining arrived: [ByteChunk],
        _ content: ContentRange,
        _ builder: EntryBuilder,
        _ hasWholeHead: Bool
    ) async -> Entry? {
        let found = await tiers.find(body.key)
        var present: StoredResponse?
        if case .entry(let entry, _) = found { present = StoredResponse(entry) }
        let joined = present.flatMap { isJoinable($0) ? $0 : nil }
        // A complete response is kept rather than a part of it, unless the part is of another
        // version.
        if let present, joined == nil, isWorthMore(present) { return nil }
        // Parts of one version are joined in whatever order they come; otherwise the newer stays.
        if joined == nil, body.isOutdated { return nil }
        guard joined != nil || hasWholeHead else {
            // The stored response is of another version, or cannot be told from one.
            if body.isPermitted, present != nil || found.isRefused { await remove(body.key) }
            services.recorder.refused(.invalidPart, context.asked.request)
            return nil
        }
        guard let merge = PartialMerge(content, joining: joined?.parts),
            merge.parts.bodySize != nil,
            merge.isWorthACopy || context.purpose == .refresh || Mutant.copiesForTinyParts.isOn
        else { return nil }
        var builder = builder
        if let joined, let refusal = join(joined, to: &builder) {
            services.recorder.refused(refusal, context.asked.request)
            return nil
        }
        guard merge.parts.heldBytes <= tiers.gatheredBytesMax else {
            services.recorder.refused(.tooLarge, context.asked.request)
            return nil
        }
        builder.hold(merge.parts)
        let blueprint = builder.blueprint
        guard blueprint.isEncodable(bodyCount: merge.parts.heldBytes),
            let pieces = await pieces(of: merge, arrived, joined)
        else { return nil }
        return await tiers.makeEntry(blueprint, gathered: pieces)
    }

    /// Joins a stored part to the one that has arrived; returns the reason if both must not be stored
    /// as one response.
    ///
    /// The rules see the fields of the origin, and not those that the hook has changed.
    private func join(
        _ stored: StoredResponse,
        to builder: inout EntryBuilder
    ) -> StoreRefusalReason? {
        let response = ReceivedResponse(
            status: body.origin.status,
            fields: PartialBody.joinedFields(
                stored: stored.fields(),
                new: body.builder.fields
            ),
            to: context.factsForStoring,
            rules: services.storingRules(context.policy),
            requestSeconds: body.origin.requestSeconds,
            responseSeconds: body.origin.responseSeconds
        )
        switch response.decision {
        case .refuse(let refusal): return StoreRefusalReason(refusal.code)
        case .store(let lifetime):
            return builder.join(stored, as: response, lifetime: lifetime) ? nil : .tooManyTags
        }
    }

    /// Whether both parts have one strong validator.
    ///
    /// The facts are those of the origin's fields; the kept fields may have a Date by this cache's
    /// clock.
    private func isJoinable(_ stored: StoredResponse) -> Bool {
        stored.parts != nil
            && (areStrong(stored.facts, body.builder.facts) || Mutant.trustsItsOwnDates.isOn)
            && PartialBody.mayCombine(stored: stored.fields(), new: body.builder.fields)
    }

    private func areStrong(_ stored: StoredFacts, _ new: StoredFacts) -> Bool {
        stored.flags.contains(.hasStrongValidator) && new.flags.contains(.hasStrongValidator)
    }

    private func isWorthMore(_ stored: StoredResponse) -> Bool {
        !stored.facts.flags.contains(.isPartial)
            && !Conditional.tellsOfAnotherVersion(
                stored: stored.fields(),
                new: body.builder.fields
            )
            && !Mutant.replacesWholeByPart.isOn
    }

    /// The bytes of the joined parts; `nil` if stored ones cannot be read.
    private func pieces(
        of merge: PartialMerge,
        _ arrived: [ByteChunk],
        _ stored: StoredResponse?
    ) async -> [ByteChunk]? {
        var joined: [ByteChunk] = []
        for piece in merge.pieces {
            switch piece {
            case .arrived: joined += arrived
            case .stored(let range):
                guard let stored, let parts = stored.parts,
                    let bytes = try? await stored.body(parts.storedRange(of: range))
                        .collect(upTo: .bytes(range.count))
                else { return nil }
                joined.append(bytes)
            }
        }
        return joined.byteCount == merge.parts.heldBytes ? joined : nil
    }
}
