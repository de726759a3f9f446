import CacheEngine

extension Workload {
    /// Responses from memory that are not plain hits.
    static let httpAnswers = Workload(
        name: "http-answers",
        question: "request in, response out: 304, a range, HEAD, a stored 404"
    ) { plan in
        let fixture = SharedLater { try await HTTPAnswersFixture() }
        return HTTPAnswer.allCases.map { HTTPAnswerCase(plan, fixture, $0) }
    }
}

/// The kinds of responses that are measured.
enum HTTPAnswer: String, CaseIterable, Sendable {
    case plain, notModified, range, head, missing

    /// A request that is answered so.
    var request: CacheRequest {
        let usual: HeaderFields = [
            "Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "bench",
        ]
        let found = CacheRequest(url: KeySet.text(1), fields: usual)
        var request = found
        switch self {
        case .plain: break
        case .notModified: request.fields["If-None-Match"] = "\"1\""
        case .range: request.fields["Range"] = "bytes=0-99"
        case .head: request.method = .head
        case .missing: request.url = KeySet.text(2)
        }
        return request
    }

    var status: Int {
        switch self {
        case .plain, .head: 200
        case .notModified: 304
        case .range: 206
        case .missing: 404
        }
    }
}

/// A cache with a response and a negative response.
final class HTTPAnswersFixture: Sendable {
    let cache: HTTPCache

    init() async throws {
        cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(64)),
            origin: NumberedOrigin()
        )
        for answer in [HTTPAnswer.plain, .missing] {
            var response = NumberedOrigin.response(1, bodySizeBytes: HTTPFixture.bodySizeBytes)
            response.status = answer.status
            let outcome = try await cache.store(response, for: answer.request)
            try WorkloadFailure.require(
                outcome == .stored,
                "The cache did not store a response: \(outcome)"
            )
        }
    }

    /// Responds to the request again and again, and reads the field lines as a server does.
    ///
    /// - Returns: The number of responses with that status.
    func answers(to request: CacheRequest, status: Int) -> UInt64 {
        var right: UInt64 = 0
        for _ in 0..<TimedLoop.chunkSize {
            guard let response = cache.immediateResponse(to: request) else { continue }
            var lines = 0
            response.fields.forEachLine { name, _ in lines &+= name.count }
            if response.status == status, lines > 0 { right += 1 }
        }
        return right
    }
}

private final class HTTPAnswerCase: WorkloadCase {
    private let plan: WorkloadPlan
    private let shared: SharedLater<HTTPAnswersFixture>
    private let answer: HTTPAnswer

    init(_ plan: WorkloadPlan, _ shared: SharedLater<HTTPAnswersFixture>, _ answer: HTTPAnswer) {
        self.plan = plan
        self.shared = shared
        self.answer = answer
    }

    var parameters: [Measurement.Parameter] { [.init("answer", answer.rawValue)] }

    func prepare() async throws { _ = try await run(nanoseconds: plan.roundNanoseconds / 4) }

    func round() async throws -> [Sample] {
        let outcome = try await run(nanoseconds: plan.roundNanoseconds)
        try outcome.requireAllCorrect("http-answers")
        return [
            .time("time_per_answer", outcome.nanosecondsPerOperation),
            .allocations(outcome.allocations, operations: outcome.operations),
        ]
    }

    func finish() async throws {
        await shared.made?.cache.shutDown()
        shared.release()
    }

    private func run(nanoseconds: UInt64) async throws -> TimedLoop.Outcome {
        let fixture = try await shared.get()
        let (request, status) = (answer.request, answer.status)
        return TimedLoop.run(threads: 1, nanoseconds: nanoseconds) { _, _ in
            fixture.answers(to: request, status: status)
        }
    }
}
