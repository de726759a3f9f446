import HTTPCaching

/// Updates a stored response with the head that confirmed it (RFC 9111 §4.3.4).
struct Confirmation {
    let services: Services
    let context: FetchContext
    /// The ticket of the attempt that confirmed the response.
    let ticket: RemovalLedger.Ticket

    /// The confirmed response, which every waiter gets unless it may no longer be stored.
    func freshen(_ stored: StoredResponse, _ answer: OriginAnswer) async -> FetchOutcome {
        let (current, refusal, sharing) = await renew(stored, answer)
        return FetchOutcome(
            answer: FlightAnswer(
                status: answer.status,
                fields: answer.fields,
                content: .confirmed(current),
                refusal: refusal ?? removal(of: current)
            ),
            sharing: sharing
        )
    }

    /// The reason why the confirmed response is not stored although it may be: a removal.
    ///
    /// A refresh is without it: no request waits for the reason, and the origin has not failed.
    private func removal(of current: StoredResponse) -> StoreRefusalReason? {
        let isStored =
            context.purpose == .refresh || services.tiers.permits(current.entry, since: ticket)
        return isStored ? nil : StoreRefusalReason(.removedMeanwhile)
    }

    /// Writes the stored response anew with the merged fields.
    private func renew(
        _ stored: StoredResponse,
        _ answer: OriginAnswer
    ) async -> (StoredResponse, StoreRefusalReason?, FetchOutcome.Sharing) {
        let rules = services.storingRules(context.policy)
        let fields = Conditional.freshen(
            stored: stored.fields(),
            with304: answer.fields,
            rules: rules,
            receivedAtSeconds: answer.responseSeconds
        )
        let merged = ReceivedResponse(
            status: Int(stored.facts.status),
            fields: fields,
            to: context.factsForStoring,
            rules: rules,
            requestSeconds: answer.requestSeconds,
            responseSeconds: answer.responseSeconds
        )
        var lifetime = FreshnessLifetime(seconds: 0, source: .none)
        var refusal: StoreRefusalReason?
        switch merged.decision {
        case .store(let allowed): lifetime = allowed
        case .refuse(let reason): refusal = StoreRefusalReason(reason.code)
        }
        if let seconds = stored.ownLifetimeSeconds, refusal == nil {
            lifetime = FreshnessLifetime(seconds: seconds, source: .override)
        }
        let facts = facts(of: merged, lifetime, confirming: stored.facts)
        // The directives of either response may name a field of the other.
        let kept = Mutant.keepsNamedFields.isOn ? fields : merged.storedFields
        var builder = EntryBuilder(renewing: stored, facts: facts, fields: kept)
        if let tags = services.configuration.caching.renewedTags(of: stored, kept) {
            builder.tags = tags
        } else {
            refusal = refusal ?? .tooManyTags
        }
        let blueprint = builder.blueprint
        let tiers = services.tiers
        var new = stored.stored
        if blueprint.isEncodable(bodyCount: stored.entry.bodyCount) {
            new = await tiers.renewed(new, as: blueprint)
        }
        if !context.policy.writes {
            refusal = refusal ?? .policy
        } else if !merged.isRefusedToThisRequestAlone {
            let isKept = refusal == nil
            let isWritten = isKept && needsWriting(stored, facts, kept)
            await put(new, for: stored, isKept: isKept, isWritten: isWritten)
        }
        return (
            StoredResponse(new) ?? stored, refusal,
            refusal == nil ? .everyone : .refused(merged)
        )
    }

    /// The facts of the confirmed response.
    ///
    /// Its validators are as weak as they were stored: neither the strong tag of a 304 nor its Date
    /// tells more about the stored bytes (decision 0014).
    private func facts(
        of merged: ReceivedResponse,
        _ lifetime: FreshnessLifetime,
        confirming stored: StoredFacts
    ) -> StoredFacts {
        var facts = merged.storedFacts(lifetime)
        let strong: StoredFacts.Flags = [.hasStrongValidator, .hasStrongDate]
        if !Mutant.strengthensByConfirmations.isOn {
            facts.flags.subtract(strong.subtracting(stored.flags))
        }
        return facts
    }

    /// Whether the record on disk has to be replaced, and the body written again with it.
    ///
    /// A record that is as good serves on: the response was fresh, or it never is, and nothing but its
    /// times has changed. Otherwise a client that asks for confirmations would write a megabyte with
    /// each.
    private func needsWriting(
        _ stored: StoredResponse,
        _ facts: StoredFacts,
        _ fields: FieldSection
    ) -> Bool {
        let now = services.clock.nowSeconds
        guard !Mutant.writesEachConfirmation.isOn,
            facts.freshnessLifetimeSeconds == 0 || stored.facts.isFresh(at: now),
            facts.hasSameRules(as: stored.facts),
            facts.ageSeconds(at: now) <= stored.facts.ageSeconds(at: now),
            fields.withoutTimes == stored.fields().withoutTimes,
            !services.tiers.isMarkedStale(stored.entry),
            let disk = services.tiers.backing.disk
        else { return true }
        // The log may have dropped it while the memory kept it.
        return disk.currentToken(stored.entry.head.hash) == nil
    }

    private func put(
        _ new: StoredEntry,
        for stored: StoredResponse,
        isKept: Bool,
        isWritten: Bool
    ) async {
        let tiers = services.tiers
        guard isKept else {
            // An attempt that was given up removes nothing that its successor has stored.
            guard ticket.isPermitted else { return }
            let selected = SelectedResponses(services: services, context: context)
            await selected.end(context.lookup.key) { await tiers.remove($0) }
            return
        }
        await tiers.replace(stored.stored, by: new, since: ticket, isWritten: isWritten)
        // Also if it is no longer stored: its waiters get it as the newest one. An attempt that was
        // given up, or that a removal has overtaken, answers no request that came later.
        if tiers.permits(new.entry, since: ticket) {
            tiers.outdateOlder(than: new.entry, since: ticket)
        }
        // If the process ends now, an older record must not make the stored response fresh again.
        if isWritten, stored.facts.isFresh(at: services.clock.nowSeconds) {
            await tiers.settle(context.lookup.key.hash)
        }
    }
}

extension FieldSection {
    /// The fields that a confirmation without a change leaves as they are.
    fileprivate var withoutTimes: FieldSection {
        var rest = self
        for name in ["date", "age", "expires"] as [StaticString] { rest.remove(lowercased: name) }
        return rest
    }
}
