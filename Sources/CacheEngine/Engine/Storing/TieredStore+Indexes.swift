/// The indexes of variants, which lead to the entries of a resource.
extension TieredStore {
    /// Stores an index; the caller rings the tier behind the memory.
    ///
    /// One that `mayWait` is for the memory only, until `writeIndex` finds that a variant was stored
    /// behind it: no file has the URL of a response that is kept in no file. The index of before
    /// stays there meanwhile. If it `isFirst`, a response that did not vary is removed instead.
    func put(
        index blueprint: EntryBlueprint,
        isFirst: Bool,
        mayWait: Bool,
        since ticket: RemovalLedger.Ticket
    ) {
        if mayWait {
            var waiting = blueprint
            waiting.place = .memoryOnly
            let index = makeEntry(waiting, body: EmptyCollection())
            let outcome = memory.store(
                index,
                whileLocked: {
                    outdateOlder(than: index, since: ticket)
                    if isFirst { backing.acceptRemoval(of: StoredEntry(index).key) }
                },
                onlyIf: { permits(index, since: ticket) }
            )
            switch outcome {
            case .stored, .refused(.removedMeanwhile): return
            // The memory keeps nothing.
            case .refused: break
            }
        }
        _ = put(makeEntry(blueprint, body: EmptyCollection()), since: ticket)
    }

    /// Stores behind the memory the index that leads to `variant`, which was stored there, if only the
    /// memory has it; the caller rings.
    func writeIndex(of variant: Entry, since ticket: RemovalLedger.Ticket) {
        // Most entries are no variants: their keys are not copied.
        let resource = variant.withKey { ResourceTag.resource(in: $0).map { [UInt8]($0) } }
        guard let resource else { return }
        let hash = resource.withUnsafeBytes { hasher.hash($0) }
        let key = RequestKey(bytes: resource, hash: hash)
        while let waiting = peek(key), waiting.head.isMemoryOnly,
            waiting.head.flags.contains(.index), permits(waiting, since: ticket),
            !Mutant.leavesIndexesInMemory.isOn
        {
            var blueprint = EntryBlueprint(waiting, metadata: waiting.metadata.array)
            blueprint.place = .everywhere
            let index = blueprint.makeEntry(body: [], sequence: waiting.head.sequence)
            let isWritten = memory.replaceIfSame(
                index,
                expecting: waiting,
                whileLocked: { _ = storeBehind(index) },
                onlyIf: { permits(index, since: ticket) }
            )
            // Otherwise another variant has been entered.
            if isWritten { return }
        }
    }
}
