import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// The memory that an entry takes in addition to its own bytes.
    static let footprint = Workload(
        name: "footprint",
        question: "bytes an entry takes beyond its own, in memory and in the disk's index; RSS"
    ) { plan in [MemoryFootprintCase(plan), ChurnFootprintCase(plan), IndexFootprintCase(plan)] }
}

/// Many small entries of varying sizes: the accounted bytes beyond the entries' own.
///
/// Sizes vary, so that the allocator's rounding counts with its average.
private final class MemoryFootprintCase: WorkloadCase {
    private let plan: WorkloadPlan
    init(_ plan: WorkloadPlan) { self.plan = plan }

    private var entryCount: Int { plan.sized(smoke: 5_000, quick: 200_000, full: 1_000_000) }
    var parameters: [Measurement.Parameter] { [.init("entries", entryCount)] }
    func prepare() async throws {}

    func round() async throws -> [Sample] {
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: entryCount * 1_024))
        let hasher = KeyHasher(seed: KeyHash(placement: 7, identity: 8))
        var own = 0
        for number in 0..<entryCount {
            let entry = withUnsafeBytes(of: UInt64(number)) { key in
                EntryMaker.entry(
                    hash: hasher.hash(key),
                    key: key,
                    bodySizeBytes: 128 + number % 128,
                    firstByte: 1
                )
            }
            own += entry.sizeBytes
            tier.store(entry)
        }
        let usage = tier.usage()
        try WorkloadFailure.require(
            usage.entries == entryCount,
            "footprint: \(usage.entries) of \(entryCount) entries are stored"
        )
        let overhead = Double(usage.bytes - own) / Double(entryCount)
        return [
            .lowerIsBetter("memory_overhead_per_entry", overhead, .bytes),
            .lowerIsBetter(
                "memory_per_entry",
                Double(usage.bytes) / Double(entryCount),
                .bytes
            ),
        ]
    }
}

/// The resident memory while ten times the capacity passes through a full memory.
private final class ChurnFootprintCase: WorkloadCase {
    private let plan: WorkloadPlan
    init(_ plan: WorkloadPlan) { self.plan = plan }

    private var capacityBytes: Int {
        plan.sized(smoke: 16 << 20, quick: 128 << 20, full: 512 << 20)
    }
    var parameters: [Measurement.Parameter] {
        [.init("capacity", Unit.bytes.readable(Double(capacityBytes)))]
    }
    func prepare() async throws {}

    func round() async throws -> [Sample] {
        ResidentMemory.giveBack()
        let before = ResidentMemory.bytes
        let tier = MemoryTier(MemoryConfiguration(capacityBytes: capacityBytes))
        var random = SeededRandom(seed: 5)
        let hasher = KeyHasher(seed: KeyHash(placement: 3, identity: 4))
        var peak = 0
        var stored = 0
        var number: UInt64 = 0
        while stored < capacityBytes * 10 {
            number += 1
            // From 256 B to 64 KiB, with equal probability for each power of two.
            let size = 256 << Int(random.next() % 9)
            let entry = withUnsafeBytes(of: number) { key in
                EntryMaker.entry(
                    hash: hasher.hash(key),
                    key: key,
                    bodySizeBytes: size,
                    firstByte: 1
                )
            }
            tier.store(entry)
            stored += entry.sizeBytes
            if number % 4_096 == 0 { peak = max(peak, ResidentMemory.bytes) }
        }
        peak = max(peak, ResidentMemory.bytes)
        let accounted = tier.usage().bytes
        try WorkloadFailure.require(
            accounted <= capacityBytes && accounted > capacityBytes / 2,
            "footprint: \(accounted) bytes are accounted for, of \(capacityBytes)"
        )
        return [
            .lowerIsBetter(
                "resident_over_accounted",
                Double(max(0, peak - before)) / Double(capacityBytes),
                .share
            )
        ]
    }
}

/// The memory that the index of many disk entries takes.
private final class IndexFootprintCase: WorkloadCase {
    private let plan: WorkloadPlan
    init(_ plan: WorkloadPlan) { self.plan = plan }

    private var entryCount: Int { plan.sized(smoke: 5_000, quick: 200_000, full: 1_000_000) }
    var parameters: [Measurement.Parameter] { [.init("entries", entryCount)] }
    func prepare() async throws {}

    func round() async throws -> [Sample] {
        let fixture = try await DiskFixture.empty(plan, entryCount: entryCount, bodySizeBytes: 64)
        try await fixture.fill()
        let statistics = fixture.tier.statistics
        await fixture.tier.close()
        try WorkloadFailure.require(statistics.indexEntries > 0, "footprint: the index is empty")
        return [
            .lowerIsBetter(
                "disk_index_per_entry",
                Double(statistics.indexBytes) / Double(statistics.indexEntries),
                .bytes
            )
        ]
    }
}

/// The resident memory of this process according to the operating system.
enum ResidentMemory {
    static var bytes: Int {
        #if os(Linux)
            let fields = (try? TextFile.read("/proc/self/statm"))?.split(separator: " ") ?? []
            let pages = fields.count > 1 ? Int(fields[1]) ?? 0 : 0
            return pages * Machine.pageBytes
        #else
            var usage = rusage()
            getrusage(RUSAGE_SELF, &usage)
            return usage.ru_maxrss
        #endif
    }

    /// Returns freed memory to the system, so that the next measurement does not include it.
    static func giveBack() {
        #if canImport(Glibc)
            // `malloc_trim` is declared in a header that the module map leaves out.
            guard let symbol = dlsym(nil, "malloc_trim") else { return }
            typealias Trim = @convention(c) (Int) -> Int32
            _ = unsafeBitCast(symbol, to: Trim.self)(0)
        #endif
    }
}
