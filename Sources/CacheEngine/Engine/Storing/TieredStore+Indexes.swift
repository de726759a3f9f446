/// The indexes of variants, which lead to the entries of a resource.
extension TieredStore {
    /// The entry in memory under the key of a variant's resource.
    func presentIndex(of variant: RequestKey) -> Entry? {
        variant.resource.flatMap { bytes in
            let hash = bytes.withUnsafeBytes { hasher.hash($0) }
            return peek(RequestKey(bytes: bytes, hash: hash))
        }
    }

    /// Whether a look-up in memory finds the entry of the key, a variant through its index.
    func isReached(_ key: RequestKey) -> Bool {
        guard key.resource != nil else { return peek(key) != nil }
        guard let entry = presentIndex(of: key), let index = VariantIndex(entry),
            let roll = VariantRoll(entry)
        else { return false }
        return roll.contains(index.hash(key))
    }

    /// Stores an index; the caller rings the tier behind the memory.
    ///
    /// One that `mayWait` is for the memory only, until its variant is entered once more: no file has
    /// the URL of a response that is kept in no file. The index of before stays there meanwhile, unless
    /// this one `isFirst` of its nonce: then a response that did not vary is removed instead, or the
    /// index that leads to older variants.
    ///
    /// `isCurrent` says whether no newer response has come instead; it is called while the key is
    /// locked.
    func put(
        index blueprint: EntryBlueprint,
        isFirst: Bool,
        mayWait: Bool,
        since ticket: RemovalLedger.Ticket,
        onlyIf isCurrent: () -> Bool
    ) {
        guard mayWait else {
            let index = makeEntry(blueprint, body: EmptyCollection())
            _ = put(index, since: ticket, onlyIf: isCurrent)
            return
        }
        var waiting = blueprint
        waiting.place = .memoryOnly
        let index = makeEntry(waiting, body: EmptyCollection())
        _ = memory.store(
            index,
            whileLocked: {
                outdateOlder(than: index, since: ticket)
                if isFirst { backing.acceptRemoval(of: StoredEntry(index).key) }
            },
            onlyIf: { permits(index, since: ticket) && isCurrent() }
        )
    }
}
