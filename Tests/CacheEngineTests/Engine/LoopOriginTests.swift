import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// Misses whose origin is asked by an event loop: a flight has no task unless it must wait.
@Suite struct LoopOriginTests {
    /// An origin that holds the requests that were begun, and answers the others.
    private final class HeldLoop: LoopOrigin {
        final class Exchange: LoopExchange {
            let cancelCount = Atomic(0)
            /// Whether the exchange ends when it is cancelled, or only when the test says so.
            private let endsWhenCancelled: Bool
            private let completion: Mutex<(@Sendable (consuming LoopAnswer) -> Void)?>

            init(
                endsWhenCancelled: Bool,
                _ completion: @escaping @Sendable (consuming LoopAnswer) -> Void
            ) {
                self.endsWhenCancelled = endsWhenCancelled
                self.completion = Mutex(completion)
            }

            func end(_ answer: consuming LoopAnswer) {
                let completion = completion.withLock { $0.take() }
                completion?(answer)
            }

            func answer(_ cacheControl: String = "max-age=60", _ body: String = "body") {
                end(.response(.whole(fields: ["Cache-Control": "\(cacheControl)"], body: body)))
            }

            func cancel() {
                cancelCount.add(1, ordering: .relaxed)
                if endsWhenCancelled { end(.failure(CancellationError())) }
            }
        }

        private let state = Mutex<(exchanges: [Exchange], fetchCount: Int)>(([], 0))
        let isOnLoop: Bool
        private let refuses: Bool
        private let endsWhenCancelled: Bool

        init(isOnLoop: Bool = true, refuses: Bool = false, endsWhenCancelled: Bool = true) {
            self.isOnLoop = isOnLoop
            self.refuses = refuses
            self.endsWhenCancelled = endsWhenCancelled
        }

        var begun: [Exchange] {
            state.withLock { state in state.exchanges.map { $0 } }
        }
        var fetchCount: Int { state.withLock { $0.fetchCount } }

        func begin(
            _ request: consuming OriginRequest,
            _ completion: @escaping @Sendable (consuming LoopAnswer) -> Void
        ) -> (any LoopExchange)? {
            guard !refuses else { return nil }
            let exchange = Exchange(endsWhenCancelled: endsWhenCancelled, completion)
            state.withLock { $0.exchanges.append(exchange) }
            return exchange
        }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            state.withLock { $0.fetchCount += 1 }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "fetched")
        }
    }

    /// The end of a request.
    private final class Client: Sendable {
        let answer = PendingAnswer()
        private let result = Mutex<Result<CacheResponse, any Error>?>(nil)

        func ask(_ cache: HTTPCache, _ request: CacheRequest = .page) -> Self {
            cache.begin(request, answer) { [self] result in self.result.withLock { $0 = result } }
            return self
        }

        var end: Result<CacheResponse, any Error>? { result.withLock { $0 } }
        var body: String? {
            guard case .success(let response)? = end else { return nil }
            return response.body.availableChunk?.text
        }
    }

    private static func cache(
        _ origin: HeldLoop,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> HTTPCache {
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        change(&configuration)
        return try await HTTPCache(configuration: configuration, origin: origin)
    }

    @Test(
        "a miss that the loop asks for is no job at all, and its answer is there in the same call",
        arguments: ["max-age=60", "no-store"]
    )
    func aMissNeedsNoTask(cacheControl: String) async throws {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let origin = HeldLoop()
        let cache = try await Self.cache(origin)
        let before = executor.counts.jobs
        for number in 0..<10 {
            let request = CacheRequest(
                url: "http://example.com/\(number)",
                options: RequestOptions(taskExecutor: executor)
            )
            let client = Client().ask(cache, request)
            #expect(client.end == nil)
            origin.begun[number].answer(cacheControl)
            #expect(client.body == "body")
        }
        // The second request of a key whose response may not be shared goes alone.
        for number in 0..<10 where cacheControl == "no-store" {
            let request = CacheRequest(
                url: "http://example.com/\(number)",
                options: RequestOptions(taskExecutor: executor)
            )
            let client = Client().ask(cache, request)
            origin.begun[10 + number].answer(cacheControl, "again")
            #expect(client.body == "again")
        }
        #expect(executor.counts.jobs == before)
        #expect(origin.fetchCount == 0)
        #expect(await cache.statistics.originRequests == origin.begun.count)
        #expect(await cache.workUnderWay == WorkUnderWay())
        await cache.shutDown()
    }

    @Test("a request that was not sent is sent in a task, and counts once")
    func unsentRequestIsFetched() async throws {
        let origin = HeldLoop()
        let cache = try await Self.cache(origin) {
            $0.collapsing.maximumOriginRequestsPerKey = 1
        }
        let client = Client().ask(cache)
        origin.begun[0].end(.unsent)
        guard await eventually(seconds: 5, { client.body == "fetched" }) else {
            Issue.record("the task got no place at the origin")
            return
        }
        await cache.waitUntilIdle()
        #expect(origin.fetchCount == 1)
        #expect(await cache.statistics.originRequests == 1)
        #expect(await cache.workUnderWay == WorkUnderWay())
        await cache.shutDown()
    }

    @Test("away from a loop, and if the origin begins nothing, a task fetches")
    func taskFetchesElsewhere() async throws {
        for origin in [HeldLoop(isOnLoop: false), HeldLoop(refuses: true)] {
            let cache = try await Self.cache(origin) {
                $0.collapsing.maximumOriginRequestsPerKey = 1
            }
            let client = Client().ask(cache)
            #expect(await eventually { client.body == "fetched" })
            await cache.waitUntilIdle()
            #expect(origin.begun.isEmpty && origin.fetchCount == 1)
            #expect(await cache.workUnderWay == WorkUnderWay())
            await cache.shutDown()
        }
    }

    @Test("a request waits in a task while the places of its key at the origin are taken")
    func requestsBeyondTheGateWait() async throws {
        let origin = HeldLoop()
        let cache = try await Self.cache(origin) {
            $0.collapsing.maximumOriginRequestsPerKey = 1
        }
        let alone = CacheRequest.page.with { $0.options.collapsing = .alone }
        let first = Client().ask(cache, alone)
        let second = Client().ask(cache, alone)
        #expect(origin.begun.count == 1)
        origin.begun[0].answer("no-store")
        #expect(first.body == "body")
        #expect(await eventually { second.body == "fetched" })
        await cache.waitUntilIdle()
        #expect(await cache.workUnderWay == WorkUnderWay())
        await cache.shutDown()
    }

    @Test("after a failure the next request of the flight is begun, and gets the response")
    func failureElectsAnother() async throws {
        let origin = HeldLoop()
        let cache = try await Self.cache(origin)
        let first = Client().ask(cache)
        let second = Client().ask(cache)
        // The follower waits in a task of its own.
        #expect(await eventually { await cache.workUnderWay.flights == 1 })
        origin.begun[0].end(.failure(CacheError(.originFailed, detail: "refused")))
        #expect(await eventually { first.end != nil })
        guard case .failure(let error as CacheError)? = first.end else {
            Issue.record("the first request failed: \(String(describing: first.end))")
            return
        }
        #expect(error.code == .originFailed)
        #expect(await eventually { origin.begun.count + origin.fetchCount == 2 })
        if origin.begun.count == 2 { origin.begun[1].answer() }
        #expect(await eventually { second.body != nil })
        await cache.waitUntilIdle()
        #expect(await cache.workUnderWay == WorkUnderWay())
        await cache.shutDown()
    }

    @Test("the exchange of a client that leaves is cancelled, unless the response is wanted")
    func goneClientEndsItsExchange() async throws {
        for abandoned in [CollapsingOptions.Abandoned.cancel, .finish] {
            let origin = HeldLoop()
            let cache = try await Self.cache(origin) { $0.collapsing.abandoned = abandoned }
            let client = Client().ask(cache)
            client.answer.cancel()
            #expect(await eventually { client.end != nil })
            guard case .failure(let error)? = client.end else {
                Issue.record("the client got an error")
                return
            }
            #expect(error is CancellationError)
            let isCancelled = origin.begun[0].cancelCount.load(ordering: .relaxed) > 0
            #expect(isCancelled == (abandoned == .cancel))
            origin.begun[0].answer()
            await cache.waitUntilIdle()
            #expect(await cache.workUnderWay == WorkUnderWay())
            await cache.shutDown()
        }
    }

    @Test("a shutdown cancels the exchange, and returns once that has ended")
    func shutDownWaitsForTheExchange() async throws {
        let origin = HeldLoop(endsWhenCancelled: false)
        let cache = try await Self.cache(origin)
        let client = Client().ask(cache)
        let hasEnded = Atomic(false)
        let closing = Task {
            await cache.shutDown()
            return hasEnded.load(ordering: .acquiring)
        }
        let exchange = origin.begun[0]
        #expect(await eventually { exchange.cancelCount.load(ordering: .relaxed) > 0 })
        #expect(await cache.workUnderWay.tasks == 1)
        hasEnded.store(true, ordering: .releasing)
        exchange.end(.failure(CancellationError()))
        #expect(await closing.value)
        #expect(await eventually { client.end != nil })
        guard case .failure(let error as CacheError)? = client.end else {
            Issue.record("the client got an error")
            return
        }
        #expect(error.code == .shutDown)
    }

    @Test("a body that arrives after its head is delivered and stored in a task")
    func arrivingBodyNeedsATask() async throws {
        let origin = HeldLoop()
        let cache = try await Self.cache(origin)
        let client = Client().ask(cache)
        let body = ManualBody()
        origin.begun[0].end(
            .response(
                OriginResponse(
                    status: 200,
                    fields: ["Cache-Control": "max-age=60"],
                    body: body.stream()
                )
            )
        )
        #expect(await eventually { client.end != nil })
        body.feed("one ")
        body.feed("two")
        body.finish()
        let collected = try await client.end?.get().body.collect()
        #expect(collected == ByteChunk("one two"))
        await cache.waitUntilIdle()
        #expect(cache.immediateResponse(to: .page) != nil)
        await cache.shutDown()
    }

    /// Answers a request for the whole, or for a part, and then one for a newer whole, before any
    /// task runs.
    ///
    /// - Returns: The body that is stored in the end.
    private static func storedBody(
        afterPart isPart: Bool,
        _ cache: HTTPCache,
        _ origin: HeldLoop,
        _ executor: SeededExecutor
    ) async throws -> String? {
        let request = CacheRequest.page.with {
            $0.options.taskExecutor = executor
            $0.options.collapsing = .alone
        }
        let part = request.with { $0.fields["Range"] = "bytes=0-4" }
        let older = Client().ask(cache, isPart ? part : request)
        let newer = Client().ask(cache, request)
        try #require(origin.begun.count == 2)
        var fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        if isPart { fields["Content-Range"] = "bytes 0-4/10" }
        let status = isPart ? 206 : 200
        origin.begun[0].end(.response(.whole(status: status, fields: fields, body: "older")))
        let later: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"2\""]
        origin.begun[1].end(.response(.whole(fields: later, body: "newer")))
        let areAnswered = await eventually {
            await executor.settle()
            return older.body == "older" && newer.body == "newer"
        }
        #expect(areAnswered)
        return cache.immediateResponse(to: .page)?.body.availableChunk?.text
    }

    /// A task joins a part, and another awaits the disk.
    @Test("a later head outlives an earlier one, in whatever order their tasks run")
    func laterHeadStays() async throws {
        for seed: UInt64 in 0..<8 {
            for isPart in [false, true] {
                let folder = try Folder()
                let executor = SeededExecutor(seed: seed)
                let origin = HeldLoop()
                let cache = try await Self.cache(origin) {
                    if isPart { return }
                    $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(16))
                }
                let body = try await Self.storedBody(afterPart: isPart, cache, origin, executor)
                #expect(body == "newer", "seed \(seed), part: \(isPart)")
                await cache.shutDown()
            }
        }
    }

    @Test("a request that was begun at a loop's origin, and its client, are released")
    func nothingIsLeftBehind() async throws {
        let origin = HeldLoop()
        let cache = try await Self.cache(origin)
        weak var gone: Client?
        do {
            let client = Client()
            gone = client
            let request = CacheRequest.page.with { request in
                request.options.onInformational = { [client] _, _ in _ = client.end }
            }
            _ = client.ask(cache, request)
            origin.begun[0].answer("no-store")
            #expect(client.body == "body")
        }
        await cache.waitUntilIdle()
        #expect(gone == nil)
        await cache.shutDown()
    }
}
