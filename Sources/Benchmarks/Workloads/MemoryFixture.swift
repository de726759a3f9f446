import CacheEngine
import CacheTestSupport

/// A memory tier filled with the keys of a workload, and a sequence of look-ups.
final class MemoryFixture: Sendable {
    /// Small bodies, so that the tables determine the time.
    static let bodySizeBytes = 128
    /// The time at which every entry is stored.
    static let nowSeconds: UInt32 = 1_700_000_000
    /// Long enough that the processor does not learn the sequence.
    private static let sequenceLength = 1 << 18

    /// The distribution of the look-ups over the keys.
    enum Popularity: Sendable {
        case uniform
        case zipf(Double)
    }

    let keys: KeySet
    let hasher: KeyHasher
    let hashes: [KeyHash]
    let tier: MemoryTier
    private let sequence: [UInt32]

    init(keyCount: Int, popularity: Popularity = .uniform, seed: UInt64 = 1) {
        keys = KeySet(count: keyCount)
        hasher = KeyHasher(seed: KeyHash(placement: seed, identity: ~seed))
        // Twice the room that the entries need: the workload measures hits and not eviction.
        let entrySizeBytes = Self.bodySizeBytes + KeySet.keySizeBytes + EntryHead.sizeBytes + 128
        tier = MemoryTier(
            MemoryConfiguration(capacityBytes: max(64 << 20, keyCount * entrySizeBytes * 2))
        )
        sequence = Self.sequence(keyCount, popularity, seed)
        var hashes: [KeyHash] = []
        hashes.reserveCapacity(keyCount)
        let hasher = hasher
        keys.withBytes { bytes in
            for number in 0..<keyCount { hashes.append(hasher.hash(bytes.key(number))) }
        }
        self.hashes = hashes
        for number in 0..<keyCount { tier.store(entry(number)) }
    }

    /// The key of a step; all threads follow the same sequence from different positions.
    func keyNumber(_ thread: Int, _ step: Int) -> Int {
        Int(sequence[(thread &* 65_537 &+ step) & (Self.sequenceLength - 1)])
    }

    /// An entry whose first body byte identifies its key.
    func entry(_ number: Int, bodySizeBytes: Int = bodySizeBytes) -> Entry {
        keys.withBytes { bytes in
            EntryMaker.entry(
                hash: hashes[number],
                key: bytes.key(number),
                bodySizeBytes: bodySizeBytes,
                firstByte: Self.firstByte(number)
            )
        }
    }

    static func firstByte(_ number: Int) -> UInt8 { UInt8(truncatingIfNeeded: number) }

    /// Looks up a chunk of keys, hashing each; counts bodies with the right first byte.
    func hits(thread: Int, chunk: Int) -> UInt64 {
        count(thread, chunk) { number, key in isHit(number, key, hasher.hash(key)) }
    }

    /// Does the same with the stored hash, as for a caller that keeps the key.
    func hitsByHash(thread: Int, chunk: Int) -> UInt64 {
        count(thread, chunk) { number, key in isHit(number, key, hashes[number]) }
    }

    /// Does the same in place: the entry is not retained, as on the JVM.
    func hitsInPlace(thread: Int, chunk: Int) -> UInt64 {
        count(thread, chunk) { number, key in
            var isRight = false
            _ = tier.withEntry(for: hashes[number], key: key) {
                isRight = $0.firstBodyByte == Self.firstByte(number)
            }
            return isRight
        }
    }

    /// Looks up one key.
    func isHit(_ number: Int) -> Bool {
        keys.withBytes { bytes in
            let key = bytes.key(number)
            return isHit(number, key, hasher.hash(key))
        }
    }

    @inline(__always)
    private func isHit(_ number: Int, _ key: UnsafeRawBufferPointer, _ hash: KeyHash) -> Bool {
        let entry = tier.entry(for: hash, key: key)
        return entry?.firstBodyByte == Self.firstByte(number)
    }

    /// The number of hits in a chunk of keys.
    ///
    /// It is inlined into its callers, so that the loop contains no call.
    @inline(__always)
    private func count(
        _ thread: Int,
        _ chunk: Int,
        _ isHit: (Int, UnsafeRawBufferPointer) -> Bool
    ) -> UInt64 {
        keys.withBytes { bytes in
            var correct: UInt64 = 0
            let first = chunk &* TimedLoop.chunkSize
            for step in first..<first + TimedLoop.chunkSize {
                let number = keyNumber(thread, step)
                if isHit(number, bytes.key(number)) { correct &+= 1 }
            }
            return correct
        }
    }

    private static func sequence(
        _ count: Int,
        _ popularity: Popularity,
        _ seed: UInt64
    ) -> [UInt32] {
        var random = SeededRandom(seed: seed)
        switch popularity {
        case .uniform:
            return (0..<sequenceLength).map { _ in UInt32(random.next() % UInt64(count)) }
        case .zipf(let exponent):
            let sampler = ZipfSampler(count: count, exponent: exponent)
            return sampler.scatteredSequence(sequenceLength, from: &random)
        }
    }
}

/// Makes the entries that the workloads store.
enum EntryMaker {
    static func entry(
        hash: KeyHash,
        key: UnsafeRawBufferPointer,
        bodySizeBytes: Int,
        firstByte: UInt8,
        fill: ((UnsafeMutableRawBufferPointer) -> Void)? = nil
    ) -> Entry {
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        let head = EntryHead(
            hash: hash,
            createdSeconds: MemoryFixture.nowSeconds,
            keyCount: key.count,
            tagsCount: 0,
            metadataCount: 0,
            bodyCount: bodySizeBytes
        )
        return Entry(head: head, key: key, tags: empty, metadata: empty) { body in
            if let fill {
                fill(body)
            } else {
                body.initializeMemory(as: UInt8.self, repeating: firstByte)
            }
            if !body.isEmpty { body[0] = firstByte }
        }
    }
}

extension Entry {
    /// The first byte of the body; a hit reads it to prove that the body is present.
    var firstBodyByte: UInt8 {
        // A closure that crosses modules would take half as long as a hit.
        withExtendedLifetime(storage) {
            storage.unsafeBytes(EntryHead.sizeBytes + 1)[EntryHead.sizeBytes]
        }
    }
}
