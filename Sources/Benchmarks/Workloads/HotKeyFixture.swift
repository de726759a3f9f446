import CacheEngine
import Platform

/// A cache with one fresh response for all threads, and one for each.
///
/// Each thread makes its own request, so that the requests share no cache line.
final class HotKeyFixture: Sendable {
    let cache: HTTPCache
    private let memory = MemoryFixture(keyCount: 1)

    private static let chunkSize = TimedLoop.chunkSize
    /// The distance between the keys of two threads: the count of an entry may share a cache line
    /// with the end of the entry before it.
    private static let keyDistance = 16

    init(threads: Int) async throws {
        // A name of more than 15 bytes, as hosts have, and not a literal: such a string is counted.
        let name = "cache-\(threads).example.net"
        cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(64)).named(name),
            origin: NumberedOrigin()
        )
        for number in 0..<(threads + 1) * Self.keyDistance {
            let response = NumberedOrigin.response(number, bodySizeBytes: HTTPFixture.bodySizeBytes)
            let outcome = try await cache.store(response, for: Self.request(number))
            try WorkloadFailure.require(
                outcome == .stored,
                "The cache did not store a response: \(outcome)"
            )
        }
    }

    private static func request(_ number: Int) -> CacheRequest {
        CacheRequest(
            url: KeySet.text(number),
            fields: ["Accept": "*/*", "Accept-Encoding": "gzip", "User-Agent": "bench"]
        )
    }

    func run(_ call: HotKeyCall, threads: Int, nanoseconds: UInt64) async throws -> HotKeyRun {
        switch call {
        case .respond:
            return try await withThrowingTaskGroup(of: HotKeyRun.self) { group in
                for _ in 0..<threads {
                    group.addTask { try await self.respond(nanoseconds) }
                }
                var parts: [HotKeyRun] = []
                for try await part in group { parts.append(part) }
                return HotKeyRun.sum(parts)
            }
        case .lookUp:
            return team(threads, nanoseconds) { thread in
                { Int(self.memory.hits(thread: thread, chunk: $0)) }
            }
        case .lookUpInPlace:
            return team(threads, nanoseconds) { thread in
                { Int(self.memory.hitsInPlace(thread: thread, chunk: $0)) }
            }
        case .immediateResponse:
            return team(threads, nanoseconds) { _ in
                let request = Self.request(0)
                return { _ in self.immediateResponses(to: request) }
            }
        case .immediateResponseOwnKey:
            return team(threads, nanoseconds) { thread in
                let request = Self.request((thread + 1) * Self.keyDistance)
                return { _ in self.immediateResponses(to: request) }
            }
        case .withImmediateResponse:
            return team(threads, nanoseconds) { _ in
                let request = Self.request(0)
                return { _ in self.copies(for: request) }
            }
        }
    }

    private func team(
        _ threads: Int,
        _ nanoseconds: UInt64,
        _ makeChunk: @escaping @Sendable (_ thread: Int) -> (_ number: Int) -> Int
    ) -> HotKeyRun {
        let outcome = ThreadTeam.run(threads: threads) { thread -> HotKeyRun in
            let chunk = makeChunk(thread)
            var timer = HotKeyTimer(nanoseconds)
            while timer.goesOn {
                timer.add(Self.chunkSize, right: chunk(timer.chunks))
            }
            return timer.run
        }
        return HotKeyRun.sum(outcome.results)
    }

    private func immediateResponses(to request: CacheRequest) -> Int {
        var right = 0
        for _ in 0..<Self.chunkSize {
            guard let response = cache.immediateResponse(to: request) else { continue }
            if Self.isRight(response) { right += 1 }
        }
        return right
    }

    /// Copies the body, as a server does to its output.
    private func copies(for request: CacheRequest) -> Int {
        var right = 0
        withUnsafeTemporaryAllocation(byteCount: HTTPFixture.bodySizeBytes, alignment: 64) { copy in
            for _ in 0..<Self.chunkSize {
                let isRight = cache.withImmediateResponse(to: request) { response in
                    response.withBody { copy.copyMemory(from: $0) }
                    return response.status == 200
                }
                if isRight == true { right += 1 }
            }
        }
        return right
    }

    private func respond(_ nanoseconds: UInt64) async throws -> HotKeyRun {
        let request = Self.request(0)
        var timer = HotKeyTimer(nanoseconds)
        while timer.goesOn {
            var right = 0
            for _ in 0..<Self.chunkSize
            where Self.isRight(try await cache.respond(to: request)) { right += 1 }
            timer.add(Self.chunkSize, right: right)
        }
        return timer.run
    }

    /// Reads nothing but numbers, because a copy of the body would retain the entry once more.
    private static func isRight(_ response: borrowing CacheResponse) -> Bool {
        response.status == 200 && response.body.count == HTTPFixture.bodySizeBytes
    }
}

extension HTTPCache.Configuration {
    fileprivate func named(_ name: String) -> Self {
        var configuration = self
        configuration.name = name
        return configuration
    }
}

/// Counts the hits of one thread until its time is up.
private struct HotKeyTimer {
    private(set) var run = HotKeyRun()
    private(set) var chunks = 0
    private let limitNanoseconds: UInt64
    private let processorStart = Stopwatch.threadNanoseconds

    init(_ limitNanoseconds: UInt64) {
        self.limitNanoseconds = limitNanoseconds
        run.startedAt = monotonicNanoseconds()
        run.endedAt = run.startedAt
    }

    var goesOn: Bool { run.endedAt &- run.startedAt < limitNanoseconds }

    mutating func add(_ hits: Int, right: Int) {
        chunks += 1
        run.hits += hits
        run.wrong += hits - right
        run.endedAt = monotonicNanoseconds()
        run.processorNanoseconds = Stopwatch.threadNanoseconds &- processorStart
    }
}
