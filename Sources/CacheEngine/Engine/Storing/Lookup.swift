import HTTPCaching

/// Looks up the stored response to a request: in memory, behind it, and through the index of
/// variants.
struct Lookup {
    private let services: Services

    init(_ services: Services) { self.services = services }

    /// Looks in memory and behind it.
    ///
    /// `fields` are those of the request. The tier behind the memory is waited for until
    /// `untilNanoseconds` of the monotonic clock, all look-ups together, if that is given. A look-up
    /// that `mayRefuse` may be uncertain, and any one if the device hangs.
    func result(
        for key: RequestKey,
        _ fields: FieldSection,
        untilNanoseconds: UInt64? = nil,
        mayRefuse: Bool = false
    ) async -> LookupResult {
        let tiers = services.tiers
        let seconds = secondsLeft(until: untilNanoseconds)
        let primary: StoredEntry
        switch await tiers.find(key, withinSeconds: seconds, mayRefuse: mayRefuse) {
        case .entry(let entry, let tier):
            if let stored = StoredResponse(entry) {
                return LookupResult(stored, in: tier, under: key)
            }
            primary = entry
        case .nothing: return .nothing(key)
        case .refused: return .nothing(key, isUncertain: true)
        }
        guard let index = VariantIndex(primary.entry) else { return .nothing(key) }
        let candidates = variantKeys(of: key, by: index, fields)
        var isUncertain = false
        var mostRecent: (stored: StoredResponse, tier: CacheInfo.Tier, key: RequestKey)?
        for candidate in candidates {
            let seconds = secondsLeft(until: untilNanoseconds)
            switch await tiers.find(candidate, withinSeconds: seconds, mayRefuse: mayRefuse) {
            case .entry(let entry, let tier):
                guard let stored = StoredResponse(entry) else { continue }
                if let other = mostRecent?.stored, !stored.isMoreRecent(than: other) { continue }
                mostRecent = (stored, tier, candidate)
            case .nothing: continue
            case .refused: isUncertain = true
            }
        }
        guard let mostRecent else {
            return .nothing(candidates[0], .varyMiss, isUncertain: isUncertain)
        }
        return LookupResult(
            mostRecent.stored,
            in: mostRecent.tier,
            under: mostRecent.key,
            newest: candidates[0],
            isUncertain: isUncertain
        )
    }

    private func secondsLeft(until nanoseconds: UInt64?) -> Double? {
        guard let nanoseconds else { return nil }
        let now = services.clock.monotonicNanoseconds
        return nanoseconds > now ? Double(nanoseconds - now) / 1e9 : 0
    }

    /// The variant that the request selects by the index `primary`, looked up in memory only; `nil`
    /// if a more recent one may be behind it.
    func variantInMemory(_ primary: Entry, _ request: CacheRequest) -> StoredResponse? {
        guard let index = VariantIndex(primary) else { return nil }
        let key = RequestKey(StoredEntry(primary).key)
        let fields = request.fields.section
        var mostRecent: StoredResponse?
        for vary in index.sets {
            let candidate = variantKey(of: key, by: index, vary, fields)
            if let entry = services.tiers.entryInMemory(candidate) {
                guard let stored = StoredResponse(StoredEntry(entry)) else { continue }
                if let other = mostRecent, !stored.isMoreRecent(than: other) { continue }
                mostRecent = stored
            } else if index.sets.count > 1, !services.tiers.noteCertainMiss(candidate) {
                return nil
            }
        }
        return mostRecent
    }

    /// The keys under which a response to a request with `fields` may be stored.
    func candidates(for key: RequestKey, _ fields: FieldSection) async -> [RequestKey] {
        guard let primary = await services.tiers.entry(key)?.0.entry,
            let index = VariantIndex(primary)
        else { return [key] }
        return variantKeys(of: key, by: index, fields)
    }

    private func variantKeys(
        of key: RequestKey,
        by index: VariantIndex,
        _ fields: FieldSection
    ) -> [RequestKey] {
        index.sets.map { variantKey(of: key, by: index, $0, fields) }
    }

    func variantKey(
        of key: RequestKey,
        by index: VariantIndex,
        _ vary: Vary,
        _ fields: FieldSection
    ) -> RequestKey {
        let detail = VariantKey(vary, request: fields, rules: services.variantRules)
        return key.variant(detail.bytes, nonce: index.nonce, hasher: services.tiers.hasher)
    }
}

extension StoredResponse {
    /// Whether the response is the more recent of two that suit one request (RFC 9111 §4).
    fileprivate func isMoreRecent(than other: StoredResponse) -> Bool {
        if Mutant.servesTheFirstSet.isOn { return false }
        let (own, others) = (facts, other.facts)
        if own.dateSeconds != others.dateSeconds { return own.dateSeconds > others.dateSeconds }
        return own.responseTimeSeconds > others.responseTimeSeconds
    }
}
