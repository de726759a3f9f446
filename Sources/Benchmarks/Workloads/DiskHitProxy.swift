import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// Hits on disk as a proxy makes them: the whole path from the request to the response.
    static let diskHitProxy = Workload(
        name: "disk-hit-proxy",
        question: "request in, response out from a page-cached disk; memory holds a sixteenth"
    ) { plan in [4, 32].map { DiskHitProxyCase(plan, bodySizeBytes: $0 << 10) } }
}

private final class DiskHitProxyCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let bodySizeBytes: Int
    private let entryCount: Int
    private var random = SeededRandom(seed: 3)
    private var scratch: ScratchDirectory?
    private var cache: HTTPCache?
    private var requests: [CacheRequest] = []

    init(_ plan: WorkloadPlan, bodySizeBytes: Int) {
        self.plan = plan
        self.bodySizeBytes = bodySizeBytes
        entryCount = plan.sized(smoke: 500, quick: 1_000, full: 8_000)
    }

    var parameters: [Measurement.Parameter] {
        [.init("size", "\(bodySizeBytes >> 10) KiB"), .init("entries", entryCount)]
    }

    func prepare() async throws {
        let scratch = try ScratchDirectory(in: plan.scratchDirectory)
        let cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(
                memory: .bytes(entryCount * bodySizeBytes / 16),
                backing: .disk(path: scratch.path + "/cache", capacity: .gigabytes(1))
            ),
            origin: NumberedOrigin()
        )
        self.scratch = scratch
        self.cache = cache
        requests = (0..<entryCount).map {
            CacheRequest(
                url: KeySet.text($0),
                fields: ["Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "bench"]
            )
        }
        for (number, request) in requests.enumerated() {
            let response = NumberedOrigin.response(number, bodySizeBytes: bodySizeBytes)
            _ = try await cache.store(response, for: request)
            // The queue to the disk is bounded; an entry beyond its bound would not be written.
            if number % 16 == 15 { try await cache.flush() }
        }
        try await cache.flush()
    }

    func round() async throws -> [Sample] {
        guard let cache else { throw WorkloadFailure.notPrepared }
        let count = plan.sized(smoke: 100, quick: 2_000, full: 10_000)
        let numbers = (0..<count).map { _ in Int(random.next() % UInt64(entryCount)) }
        var hitsOnDisk = 0
        let allocationsBefore = Allocations.ofAllThreads
        let outcome = try await TaskTeam.runSingly(count: count) { step in
            let response = try await cache.respond(to: requests[numbers[step]])
            let body = try await response.body.collect(upTo: .megabytes(1))
            if response.info.tier == .disk { hitsOnDisk += 1 }
            return response.info.source == .fresh && body.count == bodySizeBytes
        }
        await cache.waitUntilIdle()
        let allocations = Allocations.ofAllThreads &- allocationsBefore
        try outcome.requireAllCorrect("disk-hit-proxy")
        try WorkloadFailure.require(
            hitsOnDisk * 10 >= count * 8,
            "disk-hit-proxy: only \(hitsOnDisk) of \(count) hits were on disk"
        )
        let median = Double(outcome.histogram.percentile(0.5))
        return [
            .time("time_per_hit", median, outcome.histogram),
            .allocations(allocations, operations: count),
        ]
    }

    func finish() async throws {
        await cache?.shutDown()
        cache = nil
        scratch = nil
    }
}
