import CacheEngine

/// A disk tier in a scratch directory, filled with numbered entries.
final class DiskFixture {
    let keys: KeySet
    let bodySizeBytes: Int
    let tier: DiskTier
    let scratch: ScratchDirectory
    let hashes: [KeyHash]
    private var touched: UInt64 = 0

    private init(keys: KeySet, bodySizeBytes: Int, tier: DiskTier, scratch: ScratchDirectory) {
        self.keys = keys
        self.bodySizeBytes = bodySizeBytes
        self.tier = tier
        self.scratch = scratch
        hashes = keys.withBytes { bytes in
            (0..<keys.count).map { tier.hasher.hash(bytes.key($0)) }
        }
    }

    /// Opens an empty tier with twice the room that `entryCount` entries need.
    static func empty(
        _ plan: WorkloadPlan,
        entryCount: Int,
        bodySizeBytes: Int
    ) async throws -> DiskFixture {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        let wanted = entryCount * (bodySizeBytes + 256) * 2
        let tier = try await DiskTier.open(
            DiskConfiguration(
                directory: scratch.path + "/tier",
                capacityBytes: max(128 << 20, wanted)
            )
        )
        return DiskFixture(
            keys: KeySet(count: entryCount),
            bodySizeBytes: bodySizeBytes,
            tier: tier,
            scratch: scratch
        )
    }

    /// Stores every entry and writes it to the files.
    func fill() async throws {
        for number in 0..<keys.count { try await store(number) }
        try await tier.flush()
    }

    /// Stores one entry and waits if the queue is full.
    func store(_ number: Int) async throws {
        let entry = entry(number)
        for _ in 0..<Self.attemptsMax {
            switch tier.enqueue(entry) {
            case .stored: return
            case .refused(.queueFull): try await tier.flush()
            case .refused(let reason):
                throw WorkloadFailure("The disk tier refused an entry: \(reason)")
            }
        }
        throw WorkloadFailure("The queue of the disk tier stays full")
    }

    /// If the queue is still full after this many flushes, another flush will not empty it.
    private static let attemptsMax = 100

    func entry(_ number: Int) -> Entry {
        keys.withBytes { bytes in
            EntryMaker.entry(
                hash: hashes[number],
                key: bytes.key(number),
                bodySizeBytes: bodySizeBytes,
                firstByte: MemoryFixture.firstByte(number)
            ) { BodyPool.shared.copyBody(number, into: $0) }
        }
    }

    /// Loads the key and its hash into the processor's cache.
    ///
    /// A caller that has just made the key has it there; the peers do the same.
    func touchKey(_ number: Int) {
        let sum = keys.withBytes { $0.key(number).reduce(0) { $0 &+ $1 } }
        touched = touched &+ UInt64(sum) &+ hashes[number].identity
    }

    /// Reads one entry from the disk and returns whether it is present with the right body.
    func isHit(_ number: Int) async -> Bool {
        if let isHit = isHitWithoutWaiting(number) { return isHit }
        return await isHitAfterWaiting(number)
    }

    /// Does the same without waiting for the device; returns `nil` if it would have to wait.
    func isHitWithoutWaiting(_ number: Int) -> Bool? {
        let result = keys.withBytes { bytes in
            tier.read(hashes[number], key: bytes.key(number))
        }
        switch result {
        case .hit(let stored, _): return isRight(stored, number)
        case .miss: return false
        case .mustWait: return nil
        }
    }

    func isHitAfterWaiting(_ number: Int) async -> Bool {
        let key = keys.withBytes { [UInt8]($0.key(number)) }
        let result = await tier.readWaiting(hashes[number], key: key)
        guard case .hit(let stored, _) = result else { return false }
        return isRight(stored, number)
    }

    private func isRight(_ stored: StoredEntry, _ number: Int) -> Bool {
        stored.entry.head.rawCount == bodySizeBytes
            && stored.entry.firstBodyByte == MemoryFixture.firstByte(number)
    }
}

/// The bytes from which bodies on disk are cut, the same for us and for every peer.
///
/// Body `n` of size `s` begins at `n * stride` modulo the pool's size minus `s`. Its first byte is
/// replaced by the low byte of `n`. The stride ensures that bodies that are neighbours on disk
/// share no long runs.
struct BodyPool: Sendable {
    static let shared = BodyPool(bytes: SyntheticBody.bytes(count: 4 << 20, seed: 11))
    static let stride = 506_816

    let bytes: [UInt8]

    func copyBody(_ number: Int, into target: UnsafeMutableRawBufferPointer) {
        guard !target.isEmpty else { return }
        bytes.withUnsafeBytes { bytes in
            let start = number * Self.stride % (bytes.count - target.count)
            target.copyMemory(from: .init(rebasing: bytes[start..<start + target.count]))
        }
        target[0] = MemoryFixture.firstByte(number)
    }
}
