import CacheEngine
import CacheTestSupport
import Platform

extension Workload {
    /// Misses whose origin answers at once with the whole body.
    static let httpMiss = Workload(
        name: "http-miss",
        question: "request in, asked of the origin, stored in memory, response out"
    ) { plan in
        [HTTPMissCase.Place.loop, .pool].flatMap { place in
            [true, false].map { HTTPMissCase(plan, place, isStored: $0) }
        }
    }
}

/// One task that asks for each URL once.
private final class HTTPMissCase: WorkloadCase {
    /// The executor of the requests.
    enum Place: String {
        /// An executor with one thread, which the cache also uses.
        case loop
        /// The ordinary pool.
        case pool
    }

    private let plan: WorkloadPlan
    private let place: Place
    private let isStored: Bool
    private var cache: HTTPCache?
    private var executor: ThreadExecutor?
    /// The number of URLs used so far.
    private var used = 0

    init(_ plan: WorkloadPlan, _ place: Place, isStored: Bool) {
        self.plan = plan
        self.place = place
        self.isStored = isStored
    }

    var parameters: [Measurement.Parameter] {
        [.init("executor", place.rawValue), .init("response", isStored ? "stored" : "no-store")]
    }

    func prepare() async throws {
        var configuration = HTTPCache.Configuration(memory: .megabytes(64))
        if place == .loop {
            executor = ThreadExecutor()
            configuration.taskExecutor = executor
        }
        let lifetime = isStored ? "public, max-age=86400" : "no-store"
        cache = try await HTTPCache(
            configuration: configuration,
            origin: ReadyOrigin(
                NumberedOrigin.response(
                    1,
                    bodySizeBytes: HTTPFixture.bodySizeBytes,
                    lifetime: lifetime
                )
            )
        )
        _ = try await misses(plan.sized(smoke: 50, quick: 20_000, full: 50_000))
    }

    func round() async throws -> [Sample] {
        let count = plan.sized(smoke: 100, quick: 20_000, full: 100_000)
        let outcome = try await misses(count)
        return [
            .time("time_per_miss", outcome.nanosecondsPerOperation),
            .time("processor_time_per_miss", outcome.processorNanoseconds / Double(count)),
            .allocations(outcome.allocations, operations: count),
        ]
    }

    func finish() async throws {
        await cache?.shutDown()
        executor?.stop()
        (cache, executor) = (nil, nil)
    }

    private struct Outcome {
        var nanosecondsPerOperation: Double
        var processorNanoseconds: Double
        var allocations: UInt64
    }

    private func misses(_ count: Int) async throws -> Outcome {
        guard let cache else { throw WorkloadFailure("The workload was not prepared") }
        let first = used
        used += count
        return try await Task(executorPreference: executor) {
            let requests = (first..<first + count).map { CacheRequest(url: KeySet.text($0)) }
            let allocations = Allocations.ofAllThreads
            let processor = Stopwatch.processNanoseconds
            let start = monotonicNanoseconds()
            var missed = 0
            for request in requests {
                let response = try await cache.respond(to: request)
                let isRight = response.info.source == .origin && response.body.count != nil
                if isRight { missed += 1 }
            }
            let end = monotonicNanoseconds()
            try WorkloadFailure.require(
                missed == count,
                "\(Workload.httpMiss.name): \(count - missed) of \(count) operations failed"
            )
            return Outcome(
                nanosecondsPerOperation: Double(end - start) / Double(count),
                processorNanoseconds: Double(Stopwatch.processNanoseconds - processor),
                allocations: Allocations.ofAllThreads &- allocations
            )
        }.value
    }
}

/// An origin that answers every request with the same response.
private struct ReadyOrigin: Origin {
    private let response: OriginResponse

    init(_ response: CacheResponse) {
        self.response = OriginResponse(
            status: response.status,
            fields: response.fields,
            body: response.body
        )
    }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse { response }
}
