package import CacheEngine
import Platform

/// A replay of a recorded trace against memory and disk together, with real bodies in real files.
///
/// A request asks memory, then the disk; an entry from disk is promoted, unless its body is in a file
/// of its own. If both miss, the entry is stored in both, as the engine does. Every body has the size
/// that the trace gives, so the replay writes as many bytes as the trace misses.
package struct TieredReplay {
    package struct Outcome: Sendable {
        package var memory = TraceReplay.Outcome()
        package var diskHits = 0
        package var diskHitBytes = 0
        package var bytesWritten = 0

        /// Hits in both tiers as a share of all requests.
        package var requestHitRatio: Double {
            Double(memory.hits + diskHits) / Double(max(1, memory.requests))
        }

        /// Bytes of the hits in both tiers as a share of all requested bytes.
        package var byteHitRatio: Double {
            Double(memory.hitBytes + diskHitBytes) / Double(max(1, memory.bytes))
        }
    }

    private let trace: RequestTrace
    private let memoryConfiguration: MemoryConfiguration
    private let diskConfiguration: DiskConfiguration

    package init(
        _ trace: RequestTrace,
        memory: MemoryConfiguration,
        directory: String,
        diskBytes: Int
    ) {
        self.trace = trace
        memoryConfiguration = memory
        diskConfiguration = DiskConfiguration(directory: directory, capacityBytes: diskBytes)
    }

    /// Replays the trace; `progress` is called now and then with the share that is done.
    package func run(progress: (Double) -> Void = { _ in }) async throws -> Outcome {
        let memory = MemoryTier(memoryConfiguration)
        var diskConfiguration = diskConfiguration
        diskConfiguration.requestsInMemory = { memory.requests(of: $0, placedIn: $1) }
        let disk = try await DiskTier.open(diskConfiguration)
        var outcome = Outcome()
        outcome.memory.capacityBytes = memoryConfiguration.capacityBytes
        let start = monotonicNanoseconds()
        for request in trace.requests {
            try await ask(memory, disk, request, &outcome)
            guard outcome.memory.requests % 1024 == 0 else { continue }
            progress(Double(outcome.memory.requests) / Double(trace.requests.count))
        }
        try await disk.flush()
        outcome.memory.nanoseconds = monotonicNanoseconds() - start
        outcome.memory.entries = memory.usage().entries
        outcome.bytesWritten = disk.statistics.bytesWritten
        await disk.close()
        return outcome
    }

    private func ask(
        _ memory: MemoryTier,
        _ disk: DiskTier,
        _ request: RequestTrace.Request,
        _ outcome: inout Outcome
    ) async throws {
        let size = Int(request.sizeBytes)
        outcome.memory.requests += 1
        outcome.memory.bytes += size
        let key = withUnsafeBytes(of: request.object) { [UInt8]($0) }
        let hash = key.withUnsafeBytes { disk.hasher.hash($0) }
        if key.withUnsafeBytes({ memory.entry(for: hash, key: $0) }) != nil {
            outcome.memory.hits += 1
            outcome.memory.hitBytes += size
            return
        }
        var result = key.withUnsafeBytes { disk.read(hash, key: $0) }
        if case .mustWait = result { result = await disk.readWaiting(hash, key: key) }
        if case .hit(let stored, _) = result {
            outcome.diskHits += 1
            outcome.diskHitBytes += size
            if stored.detachedBody == nil { memory.promote(stored.entry) }
            return
        }
        let entry = entry(hash, key, size)
        memory.store(entry)
        if disk.enqueue(entry) == .refused(.queueFull) {
            try await disk.flush()
            _ = disk.enqueue(entry)
        }
    }

    private func entry(_ hash: KeyHash, _ key: [UInt8], _ size: Int) -> Entry {
        key.withUnsafeBytes { key in
            EntryMaker.entry(hash: hash, key: key, bodySizeBytes: size, firstByte: 1) { body in
                // The pool is shorter than some bodies; such a body repeats the pool's bytes.
                var rest = body[...]
                let count = BodyPool.shared.bytes.count / 2
                while !rest.isEmpty {
                    let part = UnsafeMutableRawBufferPointer(rebasing: rest.prefix(count))
                    BodyPool.shared.copyBody(Int(hash.identity & 0xFFFF), into: part)
                    rest = rest.dropFirst(count)
                }
            }
        }
    }
}
