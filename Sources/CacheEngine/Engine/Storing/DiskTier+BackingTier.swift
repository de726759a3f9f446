/// The disk as the tier behind the memory.
extension DiskTier: BackingTier {
    var readsAtOnce: Bool { true }

    /// Finds what is queued, or in the page cache, except for an entry whose body is in a file of
    /// its own: such a body is a stream.
    func findAtOnce(_ hash: KeyHash, key: UnsafeRawBufferPointer) -> BackingEntry? {
        let result = readAtOnce(hash, key: key)
        guard case .hit(let found, let token) = result, found.detachedBody == nil else {
            return nil
        }
        return BackingEntry(entry: found, source: .disk(self, hash, token))
    }

    /// A hit in the page cache does not suspend, and a read leaves the origin half of the time.
    func find(
        _ key: RequestKey,
        withinSeconds seconds: Double?,
        mayRefuse: Bool
    ) async -> BackingFinding {
        let hash = key.hash
        var result = key.bytes.withUnsafeBytes { read(hash, key: $0) }
        if case .mustWait = result {
            result = await readWaiting(
                hash,
                key: key.bytes,
                mayRefuse: mayRefuse,
                withinSeconds: seconds.map { $0 * Self.shareOfTime }
            )
        }
        switch result {
        case .hit(let found, let token):
            return .entry(BackingEntry(entry: found, source: .disk(self, hash, token)))
        case .miss: return .nothing
        case .mustWait: return .refused
        }
    }

    private static let shareOfTime = Mutant.looksForTheWholeTime.isOn ? 1 : 0.5

    var hitCounter: Counter? { .diskHits }

    func acceptRemoval(of key: StoreKey) -> Bool { acceptRemoval(of: key.hash) }

    var gatheredBytesMax: Int { configuration.inlineBodyBytesMax }

    func hasRoom(entryBytes: Int, bodyBytes: Int) -> Bool {
        entryBytes <= entryBytesMax
    }

    func openBody(_ hash: KeyHash, expectedCount: Int?) async throws -> BodyWriter? {
        try await beginBody(for: hash, expectedBytes: expectedCount)
    }

    var disk: DiskTier? { self }

    var mayHoldOlderEntries: Bool { !recovery.isFresh }

    func confirmRemovalInTime(of hash: KeyHash) async throws {
        try await watch.call { [self] in try await confirmRemoval(of: hash) }
    }

    func endWaits(forWork: Bool) -> Bool { watch.end(leavingLanes: forWork) }

    func changeCapacity(toBytes bytes: Int) async throws { try await setCapacity(bytes) }
}

/// The disk as the keeper of soft purges.
extension DiskTier: SoftPurges {}
