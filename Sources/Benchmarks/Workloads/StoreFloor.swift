import Platform

/// The physical floor of a store on disk: LZ4 on reused buffers, and `pwrite` into existing files.
///
/// It has as many threads as the store has shards, because each shard compresses and writes on a
/// thread of its own.
struct StoreFloor: Sendable {
    let threads: Int
    let bodySizeBytes: Int
    /// The bodies that all threads together compress; as many bytes are written.
    let bodyCount: Int
    /// The beginning of the paths of the files, one for each thread.
    let path: String

    /// As large as the batches of the engine.
    private static let batchBytes = 256 << 10

    /// The bytes a second of the slower one of the two.
    func bytesPerSecond() throws -> Double { min(compressionRate(), try writingRate()) }

    /// The body bytes that all threads together compress in a second.
    private func compressionRate() -> Double {
        let count = max(1, bodyCount / threads)
        let outcome = ThreadTeam.run(threads: threads) { thread in
            Self.rate(count * bodySizeBytes, compressing(count, from: thread * count))
        }
        return outcome.results.reduce(0, +)
    }

    /// The nanoseconds that one thread takes to compress bodies.
    private func compressing(_ count: Int, from first: Int) -> UInt64 {
        var raw = [UInt8](repeating: 0, count: bodySizeBytes)
        var stored = [UInt8](repeating: 0, count: bodySizeBytes + bodySizeBytes / 128 + 64)
        var elapsed: UInt64 = 0
        for number in first..<first + count {
            raw.withUnsafeMutableBytes { BodyPool.shared.copyBody(number, into: $0) }
            let start = monotonicNanoseconds()
            _ = DiskFloor.compress(raw, into: &stored)
            elapsed += Stopwatch.elapsed(from: start, to: monotonicNanoseconds())
        }
        return elapsed
    }

    /// The bytes that all threads together write in a second.
    private func writingRate() throws -> Double {
        let batches = max(4, bodyCount * bodySizeBytes / Self.batchBytes / threads)
        func write() throws -> Double {
            let outcome = ThreadTeam.run(threads: threads) { thread in
                Result {
                    Self.rate(batches * Self.batchBytes, try writing(batches, "\(path)-\(thread)"))
                }
            }
            return try outcome.results.reduce(0) { try $0 + $1.get() }
        }
        // The first pass creates the files; the second measures overwriting, as for a reused
        // segment.
        _ = try write()
        return try write()
    }

    /// The nanoseconds that one thread takes to write batches.
    private func writing(_ batches: Int, _ path: String) throws -> UInt64 {
        let file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
        guard file >= 0 else { throw TextFile.unwritable(path) }
        defer { close(file) }
        let batch = Array(BodyPool.shared.bytes[..<Self.batchBytes])
        let start = monotonicNanoseconds()
        for number in 0..<batches {
            let count = pwrite(file, batch, batch.count, off_t(number * batch.count))
            try WorkloadFailure.require(
                count == batch.count,
                "\(path): a write of \(batch.count) bytes failed"
            )
        }
        return monotonicNanoseconds() - start
    }

    private static func rate(_ bytes: Int, _ nanoseconds: UInt64) -> Double {
        Double(bytes) * 1e9 / Double(max(1, nanoseconds))
    }
}
