import HTTPCaching

/// Enters variants into the index of their resource, so that later look-ups know the selecting
/// fields.
struct VariantRegistry {
    let services: Services
    /// The key of the resource.
    let key: RequestKey
    /// The fields of the request that the variant was fetched for.
    let fields: FieldSection
    let ticket: RemovalLedger.Ticket
    /// The variant while its key is not known, if it was not entered before.
    var arrival: ExpectedArrival?
    /// The class of the variant, as far as it is known.
    let storageClass: StorageClass
    /// Whether the variant may yet be kept in memory only, or not at all.
    let mayStayInMemory: Bool
    /// The nonce in the variant's key, if the variant was entered before.
    var nonce: UInt64?

    /// The look-ups for one variant; after the last one an index that was stored meanwhile may be
    /// replaced, and the variants that it alone names be lost.
    private static let lookUpsMax = 8

    /// Enters the variant that `vary` selects; the flight under `flightKey` that holds the ticket's
    /// permit is also found under the variant's key afterwards.
    func enter(_ vary: Vary, flightKey: KeyHash) async -> Variance {
        let tiers = services.tiers
        let desk = services.desk(key.hash)
        var lookUps = 0
        while true {
            lookUps += 1
            // Begun before the look-up, so that it tells of every later change of the index.
            let copy = tiers.arrivals.beginCopy(of: key.hash)
            let present = await tiers.entry(key)?.0.entry
            let isLast = lookUps == Self.lookUpsMax
            let variance = desk.settleVariant(of: flightKey, ticket.permit) {
                () -> (Variance?, KeyHash) in
                let inMemory = tiers.peek(key)
                // Another variant was entered behind the memory, or the index was removed.
                if inMemory == nil, copy.isOutdated, !isLast, !Mutant.entersIntoOldIndexes.isOn {
                    return (nil, flightKey)
                }
                let variance = enter(vary, among: inMemory ?? present)
                return (variance, variance.key.hash)
            }
            guard let variance else { continue }
            tiers.backing.ring(key.hash)
            await tiers.settle(key.hash)
            return variance
        }
    }

    private func enter(_ vary: Vary, among entry: Entry?) -> Variance {
        let now = services.clock.nowSeconds
        let known = entry.flatMap { VariantIndex($0) }
        var index = known ?? VariantIndex(vary, nonce: nonce ?? .random(in: 0 ... .max))
        var roll = entry.flatMap { VariantRoll($0) }
        // An index stays as long as the variants that it leads to.
        let wasPinned = known != nil && entry?.head.storageClass == .pinned
        let isPinned = wasPinned || storageClass == .pinned && !Mutant.pinsNoIndexes.isOn
        var variant = variantKey(index, vary)
        // The index forgot its variants meanwhile, this one among them.
        if let nonce, nonce != index.nonce {
            return Variance(index: index, vary: vary, key: variant)
        }
        if roll?.contains(index.hash(variant)) == true {
            let isWritten = entry.map(isWritten) ?? false
            guard known?.sets.first != vary || isPinned != wasPinned || !isWritten else {
                return Variance(index: index, vary: vary, key: variant)
            }
            index.prefer(vary)
        } else {
            let setting = services.configuration.caching.maximumVariants
            let maximumVariants = VariantIndex.limit(setting)
            if index.variants >= maximumVariants, let roll, !roll.mayEnd(atSeconds: now) {
                return Variance(index: index, vary: vary, key: variant, isStored: false)
            }
            let nonce = index.nonce
            index.add(vary, maximumVariants: maximumVariants, nonce: .random(in: 0 ... .max))
            if index.nonce != nonce {
                roll = nil
                variant = variantKey(index, vary)
            }
        }
        var newRoll = roll ?? VariantRoll(sinceSeconds: now)
        newRoll.add(index.hash(variant))
        let blueprint = EntryBuilder.blueprint(
            index,
            newRoll,
            under: key,
            isPinned: isPinned,
            nowSeconds: now
        )
        // The caller rings, once the desk is unlocked.
        services.tiers.put(
            index: blueprint,
            isFirst: known?.nonce != index.nonce,
            mayWait: mayStayInMemory && !Mutant.writesIndexesAtOnce.isOn,
            since: ticket,
            onlyIf: { arrival?.isOutdated != true }
        )
        return Variance(index: index, vary: vary, key: variant)
    }

    /// Whether the index is behind the memory, as far as it has to be.
    private func isWritten(_ entry: Entry) -> Bool {
        if mayStayInMemory { return true }
        // It was entered while nothing was known of its variants.
        if entry.head.isMemoryOnly { return false }
        // The log may have dropped it while the memory kept it.
        guard let disk = services.tiers.backing.disk, !Mutant.losesIndexes.isOn else { return true }
        return disk.currentToken(key.hash) != nil
    }

    private func variantKey(_ index: VariantIndex, _ vary: Vary) -> RequestKey {
        Lookup(services).variantKey(of: key, by: index, vary, fields)
    }
}
