package import CacheEngine

/// A replay of a recorded trace against the engine's real memory: shards, tables, queues and
/// budget.
///
/// Only the bodies are missing. An entry declares its size and is charged for it, so a trace of
/// hundreds of gigabytes fits into a small machine. Everything else, including the memory's own
/// overhead, is as in the engine.
package struct TraceReplay {
    /// How much memory the replay may use.
    package enum Capacity: Sendable {
        case bytes(Int)
        /// A share of the bytes of all distinct objects.
        case fraction(Double)
    }

    package struct Options: Sendable {
        package var capacity: Capacity
        package var policy: EvictionPolicy
        /// Whether objects have their recorded sizes or all count the same.
        package var sizing: Sizing
        /// The number of shards; if `nil`, the memory chooses it.
        package var shardCount: Int?

        package init(
            capacity: Capacity,
            policy: EvictionPolicy = .sizeAware(.balanced),
            sizing: Sizing = .recorded,
            shardCount: Int? = nil
        ) {
            self.capacity = capacity
            self.policy = policy
            self.sizing = sizing
            self.shardCount = shardCount
        }
    }

    package enum Sizing: Sendable {
        case recorded
        /// Every object is one unit, a body of 64 KiB, so that the overhead is small in comparison.
        case unit
    }

    package struct Outcome: Sendable {
        package var requests = 0
        package var hits = 0
        package var bytes = 0
        package var hitBytes = 0
        package var nanoseconds: UInt64 = 0
        package var capacityBytes = 0
        /// The largest number of bytes in use, sampled every 1,024 requests.
        package var usedBytesPeak = 0
        package var entries = 0
        /// Bytes that the memory uses in addition to the entries' own allocations.
        package var overheadBytes = 0

        package var requestHitRatio: Double { Double(hits) / Double(max(1, requests)) }
        package var byteHitRatio: Double { Double(hitBytes) / Double(max(1, bytes)) }
        package var requestsPerSecond: Double {
            Double(requests) / (Double(max(1, nanoseconds)) / 1e9)
        }
        package var overheadBytesPerEntry: Double {
            Double(overheadBytes) / Double(max(1, entries))
        }
    }

    private let trace: RequestTrace
    /// The body of an object whose size does not count.
    package static let unitBytes = 64 << 10
    // The seed is fixed, so that the same replay gives the same numbers.
    private static let hasher = KeyHasher(seed: KeyHash(placement: 0x7ACE, identity: 0xCA5E))

    package init(_ trace: RequestTrace) { self.trace = trace }

    /// Replays the trace; `progress` is called now and then with the share that is done.
    package func run(_ options: Options, progress: (Double) -> Void = { _ in }) -> Outcome {
        var outcome = Outcome()
        outcome.capacityBytes = capacityBytes(options)
        let tier = MemoryTier(
            MemoryConfiguration(
                capacityBytes: outcome.capacityBytes,
                policy: options.policy,
                shardCount: options.shardCount
            )
        )
        let clock = SystemClock()
        let began = clock.monotonicNanoseconds
        for request in trace.requests {
            let size = options.sizing == .unit ? Self.unitBytes : Int(request.sizeBytes)
            outcome.requests += 1
            outcome.bytes += size
            if Self.ask(tier, request.object, size) {
                outcome.hits += 1
                outcome.hitBytes += size
            }
            if outcome.requests % 1024 == 0 {
                outcome.usedBytesPeak = max(outcome.usedBytesPeak, tier.usage().bytes)
                progress(Double(outcome.requests) / Double(trace.requests.count))
            }
        }
        outcome.nanoseconds = clock.monotonicNanoseconds - began
        let usage = tier.usage()
        outcome.entries = usage.entries
        outcome.usedBytesPeak = max(outcome.usedBytesPeak, usage.bytes)
        outcome.overheadBytes = tier.overheadBytes
        return outcome
    }

    /// The capacity in bytes that the options give for this trace.
    package func capacityBytes(_ options: Options) -> Int {
        switch (options.capacity, options.sizing) {
        case (.bytes(let bytes), _): return bytes
        case (.fraction(let fraction), .recorded):
            return Int(Double(trace.distinctBytes) * fraction)
        case (.fraction(let fraction), .unit):
            let units = Int(Double(trace.objectCount) * fraction)
            return units * Entry.chargeBytes(bodyCount: Self.unitBytes)
        }
    }

    /// Looks up the object and stores it on a miss, as a cache in front of an origin does.
    private static func ask(_ tier: MemoryTier, _ object: UInt64, _ size: Int) -> Bool {
        let hash = withUnsafeBytes(of: object) { hasher.hash($0) }
        let empty = UnsafeRawBufferPointer(start: nil, count: 0)
        let isHit = tier.withEntry(for: hash, key: empty) { _ in }
        if !isHit {
            tier.store(Entry.declaringBody(hash: hash, bodyCount: size))
        }
        return isHit
    }
}
