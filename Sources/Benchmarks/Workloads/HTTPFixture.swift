import CacheEngine
import CacheTestSupport
import Platform

/// A cache with fresh responses in memory, and the requests for them.
final class HTTPFixture: Sendable {
    static let bodySizeBytes = 1_024

    let cache: HTTPCache
    let requests: [CacheRequest]
    private let sequence: [UInt32]
    private static let sequenceLength = 1 << 16

    init(keyCount: Int, origin: any Origin = NumberedOrigin()) async throws {
        let room = keyCount * (Self.bodySizeBytes + 1_024) * 2
        cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .bytes(max(64 << 20, room))),
            origin: origin
        )
        requests = (0..<keyCount).map { number in
            CacheRequest(
                url: KeySet.text(number),
                fields: ["Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "bench"]
            )
        }
        var random = SeededRandom(seed: 1)
        sequence = (0..<Self.sequenceLength).map { _ in
            UInt32(random.next() % UInt64(keyCount))
        }
        for (number, request) in requests.enumerated() {
            let outcome = try await cache.store(
                NumberedOrigin.response(number, bodySizeBytes: Self.bodySizeBytes),
                for: request
            )
            try WorkloadFailure.require(
                outcome == .stored,
                "The cache did not store a response: \(outcome)"
            )
        }
    }

    func number(_ worker: Int, _ step: Int) -> Int {
        Int(sequence[(worker &* 7_919 &+ step) & (Self.sequenceLength - 1)])
    }

    /// Sends a request with `respond`; returns whether a response with the right body came back.
    func isHit(_ number: Int) async throws -> Bool {
        let response = try await cache.respond(to: requests[number])
        return Self.isRight(response, number)
    }

    /// Sends `count` requests with `respond`.
    ///
    /// - Returns: The number of responses with the right body.
    func hits(_ worker: Int, from step: Int, count: Int) async throws -> Int {
        let requests = requests
        var hits = 0
        for step in step..<step + count {
            let number = number(worker, step)
            if Self.isRight(try await cache.respond(to: requests[number]), number) { hits += 1 }
        }
        return hits
    }

    /// Sends a request with `cachedResponse`, which cannot wait.
    func isHitAtOnce(_ number: Int) -> Bool {
        // The request is borrowed and not copied, because a caller has its request at hand.
        requests.withUnsafeBufferPointer { requests in
            guard let response = cache.immediateResponse(to: requests[number]) else { return false }
            return Self.isRight(response, number)
        }
    }

    static func isRight(_ response: CacheResponse, _ number: Int) -> Bool {
        response.status == 200
            && response.body.availableChunk?.withUnsafeBytes { $0.first }
                == MemoryFixture.firstByte(number)
    }
}

/// An origin whose response to `…/000042` has a body that begins with the byte 42.
struct NumberedOrigin: Origin {
    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        Self.answer(to: request, bodySizeBytes: HTTPFixture.bodySizeBytes)
    }

    static func answer(to request: OriginRequest, bodySizeBytes: Int) -> OriginResponse {
        let digits = request.url.utf8.suffix(12).filter { $0 >= 0x30 && $0 <= 0x39 }
        let number = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
        let response = response(number, bodySizeBytes: bodySizeBytes)
        return OriginResponse(
            status: response.status,
            fields: response.fields,
            body: response.body
        )
    }

    static func response(
        _ number: Int,
        bodySizeBytes: Int,
        lifetime: String = "public, max-age=86400"
    ) -> CacheResponse {
        CacheResponse(
            status: 200,
            fields: [
                "Content-Type": "text/html; charset=utf-8", "Cache-Control": lifetime,
                "ETag": "\"\(number)\"", "Content-Length": "\(bodySizeBytes)",
                "Server": "bench",
            ],
            body: BodyStream(
                ByteChunk(count: bodySizeBytes) { BodyPool.shared.copyBody(number, into: $0) }
            )
        )
    }
}

/// Several tasks that work concurrently, each until its time is up.
enum TaskTeam {
    typealias Chunk = @Sendable (_ worker: Int, _ step: Int, _ count: Int) async throws -> Int

    /// Repeats `operation` in every task; each call does many steps and returns how many succeeded.
    static func run(
        tasks: Int,
        nanoseconds: UInt64,
        _ operation: @escaping Chunk
    ) async throws -> TimedLoop.Outcome {
        let allocationsBefore = Allocations.ofAllThreads
        let parts = try await withThrowingTaskGroup(of: TimedLoop.Outcome.self) { group in
            for worker in 0..<tasks {
                group.addTask { try await repeated(worker, nanoseconds, operation) }
            }
            var parts: [TimedLoop.Outcome] = []
            for try await part in group { parts.append(part) }
            return parts
        }
        var whole = TimedLoop.sum(parts)
        whole.allocations = Allocations.ofAllThreads &- allocationsBefore
        return whole
    }

    private static let stepsBetweenLooks = 256

    private static func repeated(
        _ worker: Int,
        _ nanoseconds: UInt64,
        _ operation: Chunk
    ) async throws -> TimedLoop.Outcome {
        var mine = TimedLoop.Outcome()
        let start = monotonicNanoseconds()
        var last = start
        repeat {
            let correct = try await operation(worker, mine.operations, stepsBetweenLooks)
            mine.correct += UInt64(correct)
            mine.operations += stepsBetweenLooks
            let now = monotonicNanoseconds()
            mine.histogram.record(now &- last)
            last = now
        } while last &- start < nanoseconds
        let median = mine.histogram.percentile(0.5)
        mine.nanosecondsPerOperation = Double(median) / Double(stepsBetweenLooks)
        return mine
    }

    /// Times `count` operations of one task singly.
    static func runSingly(
        count: Int,
        _ operation: (_ step: Int) async throws -> Bool
    ) async throws -> TimedLoop.Outcome {
        var outcome = TimedLoop.Outcome(operations: count)
        for step in 0..<count {
            let before = monotonicNanoseconds()
            let isCorrect = try await operation(step)
            outcome.histogram.record(Stopwatch.elapsed(from: before, to: monotonicNanoseconds()))
            if isCorrect { outcome.correct += 1 }
        }
        return outcome
    }
}
