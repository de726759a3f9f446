/// The entries that are made to be stored: of bytes that arrived, or with the body of a stored one.
extension TieredStore {
    /// The entry that `blueprint` describes, stored now, so that earlier soft purges do not cover
    /// it.
    func makeEntry(_ blueprint: EntryBlueprint, body pieces: some Collection<ByteChunk>) -> Entry {
        blueprint.makeEntry(body: pieces, sequence: entrySequence(for: blueprint.key.hash))
    }

    /// The largest body that is copied where its request runs, which may be the loop of a server.
    private static let copiedInPlaceBytesMax = 1 << 20

    /// Whether a body of that size is copied where its request runs.
    static func isCopiedInPlace(_ bodyCount: Int) -> Bool {
        bodyCount <= copiedInPlaceBytesMax || Mutant.copiesLargeBodiesInPlace.isOn
    }

    /// The entry with the bytes of `pieces`; a large body is copied on the cache's own executor, or on
    /// that of `AwaitedWork`.
    ///
    /// Not on the disk's I/O pool, whose threads a device that hangs may keep.
    nonisolated(nonsending) func makeEntry(
        _ blueprint: EntryBlueprint,
        gathered pieces: some Collection<ByteChunk> & Sendable
    ) async -> Entry {
        if Self.isCopiedInPlace(pieces.byteCount) {
            return makeEntry(blueprint, body: pieces)
        }
        return await copiedElsewhere(blueprint, Array(pieces))
    }

    /// Not inlined, so that the frames of small bodies stay small.
    @inline(never)
    nonisolated(nonsending) private func copiedElsewhere(
        _ blueprint: EntryBlueprint,
        _ pieces: [ByteChunk]
    ) async -> Entry {
        let sequence = entrySequence(for: blueprint.key.hash)
        let ownExecutor = AwaitedWork.executor
        // Such work waits for no copy on another executor.
        let copier = ownExecutor == nil ? copier : LargeBodyCopier()
        // Awaited here, so it needs no other owner.
        return await Task.detached(executorPreference: ownExecutor ?? executor) {
            await copier.makeEntry(blueprint, body: pieces, sequence: sequence)
        }.value
    }

    /// The number of an entry that is stored now.
    func entrySequence(for hash: KeyHash) -> UInt64 {
        softPurges.entrySequence(for: hash)
    }

    /// The entry with the body of `old` and everything else from `blueprint`.
    nonisolated(nonsending) func renewed(
        _ old: StoredEntry,
        as blueprint: EntryBlueprint
    ) async -> StoredEntry {
        let renewed = await makeEntry(blueprint, gathered: CollectionOfOne(old.entry.body))
        assert(renewed.head.hash == old.entry.head.hash, "the same key")
        return StoredEntry(renewed, detachedBody: old.detachedBody)
    }

    /// The entry without its body, and the file behind the memory that has the body already.
    ///
    /// The caller has found the old version in memory and replaces it only if it is still there: the
    /// file is then of that version, because each store reaches both tiers.
    func bodyBehind(
        _ key: RequestKey,
        of entry: Entry
    ) -> (entry: Entry, body: DiskBody)? {
        guard let body = backing.bodyFile(of: key.hash), body.count == entry.bodyCount,
            !Mutant.writesKeptBodies.isOn
        else { return nil }
        let blueprint = EntryBlueprint(entry, metadata: entry.metadata.array)
        return (blueprint.makeEntry(body: [], sequence: entry.head.sequence), body)
    }
}

/// Copies large bodies into entries, one at a time: no budget counts a copy before it is stored.
actor LargeBodyCopier {
    func makeEntry(
        _ blueprint: EntryBlueprint,
        body pieces: [ByteChunk],
        sequence: UInt64
    ) -> Entry { blueprint.makeEntry(body: pieces, sequence: sequence) }
}
