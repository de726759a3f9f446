import CacheEngine

extension Workload {
    /// A complete fresh hit: a request in, a response with its fields out.
    static let httpHit = Workload(
        name: "http-hit",
        question: "request in, response out, answered fresh from memory"
    ) { plan in
        let counts =
            plan.keys.map { [$0] }
            ?? plan.sized(
                smoke: [1_024],
                quick: [1_024, 65_536],
                full: [1_024, 65_536]
            )
        return counts.flatMap { keys -> [any WorkloadCase] in
            let fixture = SharedLater { try await HTTPFixture(keyCount: keys) }
            let waiting = plan.threadCounts.map {
                HTTPHitCase(plan, fixture, keys, tasks: $0, call: .respond)
            }
            return waiting + [HTTPHitCase(plan, fixture, keys, tasks: 1, call: .cachedResponse)]
        }
    }
}

private final class HTTPHitCase: WorkloadCase {
    /// The measured method of the cache.
    enum Call: String {
        case respond
        case cachedResponse
    }

    private let plan: WorkloadPlan
    private let shared: SharedLater<HTTPFixture>
    private let keyCount: Int
    private let tasks: Int
    private let call: Call

    init(
        _ plan: WorkloadPlan,
        _ shared: SharedLater<HTTPFixture>,
        _ keyCount: Int,
        tasks: Int,
        call: Call
    ) {
        self.plan = plan
        self.shared = shared
        self.keyCount = keyCount
        self.tasks = tasks
        self.call = call
    }

    var parameters: [Measurement.Parameter] {
        [.init("keys", keyCount), .init("threads", tasks), .init("call", call.rawValue)]
    }

    func prepare() async throws {
        _ = try await steady(nanoseconds: plan.roundNanoseconds / 4)
    }

    func round() async throws -> [Sample] {
        let steady = try await steady(nanoseconds: plan.roundNanoseconds)
        try steady.requireAllCorrect("http-hit")
        let fixture = try await shared.get()
        let count = plan.sized(smoke: 500, quick: 20_000, full: 100_000)
        let single: TimedLoop.Outcome
        switch call {
        case .respond:
            single = try await TaskTeam.runSingly(count: count) {
                try await fixture.isHit(fixture.number(0, $0))
            }
        case .cachedResponse:
            single = try await TaskTeam.runSingly(count: count) {
                fixture.isHitAtOnce(fixture.number(0, $0))
            }
        }
        try single.requireAllCorrect("http-hit")
        return [
            .time("time_per_hit", steady.nanosecondsPerOperation, single.histogram),
            .allocations(steady.allocations, operations: steady.operations),
        ]
    }

    func finish() async throws {
        await shared.made?.cache.shutDown()
        shared.release()
    }

    private func steady(nanoseconds: UInt64) async throws -> TimedLoop.Outcome {
        let fixture = try await shared.get()
        switch call {
        case .respond:
            return try await TaskTeam.run(tasks: tasks, nanoseconds: nanoseconds) {
                try await fixture.hits($0, from: $1, count: $2)
            }
        case .cachedResponse:
            return TimedLoop.run(threads: tasks, nanoseconds: nanoseconds) { worker, chunk in
                var correct: UInt64 = 0
                let first = chunk &* TimedLoop.chunkSize
                for step in first..<first + TimedLoop.chunkSize
                where fixture.isHitAtOnce(fixture.number(worker, step)) { correct += 1 }
                return correct
            }
        }
    }
}
