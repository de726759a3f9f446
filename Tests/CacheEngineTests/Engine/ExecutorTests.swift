import CacheTestSupport
import Testing

@testable import CacheEngine

/// The executor of a request: a miss that needs no disk never leaves it.
@Suite struct ExecutorTests {
    private static let count = 100

    /// An origin that answers at once, and counts the calls from other threads.
    private final class LocalOrigin: Origin {
        let executor: ThreadExecutor
        let fields: HeaderFields
        let body: ByteChunk

        init(_ executor: ThreadExecutor, _ cacheControl: String, _ body: ByteChunk) {
            self.executor = executor
            self.body = body
            fields = ["Cache-Control": cacheControl, "Content-Length": "\(body.count)"]
        }

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            #expect(executor.isCurrent)
            return OriginResponse(
                status: 200,
                fields: fields,
                body: BodyStream(body)
            )
        }
    }

    /// The jobs of `count` misses by one task on an executor, which the requests name.
    private static func jobs(
        _ cacheControl: String,
        body: ByteChunk = ByteChunk("body"),
        count: Int = ExecutorTests.count
    ) async throws -> (all: Int, fromElsewhere: Int, ofTheCache: Int) {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let own = ThreadExecutor()
        defer { own.stop() }
        var configuration = HTTPCache.Configuration()
        configuration.taskExecutor = own
        let cache = try await HTTPCache(
            configuration: configuration,
            origin: LocalOrigin(executor, cacheControl, body)
        )
        let jobs = try await Task(executorPreference: executor) {
            let before = executor.counts
            for number in 0..<count {
                let request = CacheRequest(
                    url: "http://example.com/\(number)",
                    options: RequestOptions(taskExecutor: executor)
                )
                let response = try await cache.respond(to: request)
                #expect(executor.isCurrent)
                #expect(try await response.body.collect() == body)
                #expect(response.info.source == .origin)
            }
            await cache.waitUntilIdle()
            let after = executor.counts
            return (
                all: after.jobs - before.jobs,
                fromElsewhere: after.fromElsewhere - before.fromElsewhere,
                ofTheCache: own.counts.jobs
            )
        }.value
        await cache.shutDown()
        return jobs
    }

    @Test(
        "a miss in memory is two jobs of its executor, and none elsewhere: its fetch and its end",
        arguments: ["max-age=60", "no-store"]
    )
    func aMissStaysOnItsExecutor(cacheControl: String) async throws {
        let jobs = try await Self.jobs(cacheControl)
        #expect(jobs.fromElsewhere == 0)
        #expect(jobs.all == 2 * Self.count)
    }

    @Test(
        "a miss that an event loop begins is one job of it: its fetch",
        arguments: ["max-age=60", "no-store"]
    )
    func aBegunMissNeedsNoTaskOfItsOwn(cacheControl: String) async throws {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        let body = ByteChunk("body")
        let cache = try await HTTPCache(origin: LocalOrigin(executor, cacheControl, body))
        let before = executor.counts
        for number in 0..<Self.count {
            let request = CacheRequest(
                url: "http://example.com/\(number)",
                options: RequestOptions(taskExecutor: executor)
            )
            let response = try await withUnsafeThrowingContinuation { continuation in
                cache.begin(request, PendingAnswer()) { continuation.resume(with: $0) }
            }
            #expect(response.body.availableChunk == body && response.info.source == .origin)
        }
        await cache.waitUntilIdle()
        #expect(executor.counts.jobs - before.jobs == Self.count)
        await cache.shutDown()
    }

    /// An origin that keeps no request.
    private struct ForgetfulOrigin: Origin {
        let cacheControl: String

        func fetch(_ request: OriginRequest) async throws -> OriginResponse {
            .whole(fields: ["Cache-Control": "\(cacheControl)"], body: "body")
        }
    }

    /// A client of a server, which its request, its answer and the work for both refer to.
    private final class Client: Sendable {
        let answer = PendingAnswer()
        func inform() {}
    }

    @Test("a request that has begun and ended holds nobody", arguments: ["max-age=60", "no-store"])
    func aBegunRequestLeavesNothingBehind(cacheControl: String) async throws {
        let cache = try await HTTPCache(origin: ForgetfulOrigin(cacheControl: cacheControl))
        weak var gone: Client?
        do {
            let client = Client()
            gone = client
            var request = CacheRequest.page
            request.options.onInformational = { _, _ in client.inform() }
            let response = try await withUnsafeThrowingContinuation { continuation in
                cache.begin(request, client.answer) { [client] result in
                    client.inform()
                    continuation.resume(with: result)
                }
            }
            #expect(response.info.source == .origin)
        }
        await cache.waitUntilIdle()
        #expect(await eventually(seconds: 5) { gone == nil })
        await cache.shutDown()
    }

    @Test("a request that is cancelled before it has begun any work ends")
    func aCancelledAnswerIsBegunInVain() async throws {
        var configuration = HTTPCache.Configuration()
        configuration.collapsing.abandoned = .cancel
        let cache = try await HTTPCache(configuration: configuration, origin: HeldOrigin())
        let answer = PendingAnswer()
        answer.cancel()
        await #expect(throws: CancellationError.self) {
            _ = try await withUnsafeThrowingContinuation { continuation in
                cache.begin(.page, answer) { continuation.resume(with: $0) }
            }
        }
        #expect(await eventually { await cache.workUnderWay.flights == 0 })
        await cache.shutDown()
    }

    @Test("a body over 1 MiB is copied into its entry elsewhere, and one of 1 MiB in place")
    func largeBodyIsCopiedElsewhere() async throws {
        func body(_ count: Int) -> ByteChunk { ByteChunk([UInt8](repeating: 7, count: count)) }
        let inPlace = try await Self.jobs("max-age=60", body: body(1 << 20), count: 10)
        #expect(inPlace.fromElsewhere == 0)
        #expect(inPlace.all == 2 * 10)
        // The end of the work is awaited there too.
        #expect(inPlace.ofTheCache < 10)
        let elsewhere = try await Self.jobs("max-age=60", body: body((1 << 20) + 1), count: 10)
        #expect(elsewhere.ofTheCache >= 10)
    }

    /// A store whose calls run on one executor.
    private struct LocalStore: CacheStore {
        let executor: ThreadExecutor
        let entries = InMemoryStore()

        func entry(for key: StoreKey) async throws -> StoredEntry? {
            #expect(executor.isCurrent)
            return try await entries.entry(for: key)
        }

        func store(_ entry: StoredEntry) async throws -> StoreOutcome {
            #expect(executor.isCurrent)
            return try await entries.store(entry)
        }

        func remove(_ key: StoreKey) async throws -> Bool {
            #expect(executor.isCurrent)
            return try await entries.remove(key)
        }

        func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
            #expect(executor.isCurrent)
            return try await entries.removeAll(in: scope)
        }

        func usage() async -> StoreUsage {
            #expect(executor.isCurrent)
            return await entries.usage()
        }

        func flush() async throws { #expect(executor.isCurrent) }
    }

    @Test("work that a blocked thread waits for needs no other executor: its tasks stay on its own")
    func awaitedWorkStaysOnItsExecutor() async throws {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        var configuration = HTTPCache.Configuration()
        configuration.backing = .custom(LocalStore(executor: executor))
        let cache = try await HTTPCache(
            configuration: configuration,
            origin: LocalOrigin(executor, "max-age=60", ByteChunk("body"))
        )
        let large = ByteChunk([UInt8](repeating: 7, count: (1 << 20) + 1))
        let fromElsewhere = try await Task(executorPreference: executor) {
            try await AwaitedWork.$executor.withValue(executor) {
                let before = executor.counts.fromElsewhere
                for body in [ByteChunk("small"), large] {
                    let response = CacheResponse(
                        status: 200,
                        fields: ["Cache-Control": "max-age=60"],
                        body: BodyStream(body)
                    )
                    #expect(try await cache.store(response, for: .page) == .stored)
                    #expect(try await cache.storedResponse(for: .page) != nil)
                    try await cache.flush()
                    _ = try await cache.remove(.page)
                    #expect(try await cache.storedResponse(for: .page) == nil)
                }
                _ = try await cache.removeAll()
                _ = await cache.statistics
                let loaded = try await cache.respond(to: .page)
                #expect(try await loaded.body.collect() == ByteChunk("body"))
                let count = executor.counts.fromElsewhere - before
                await cache.shutDown()
                return count
            }
        }.value
        #expect(fromElsewhere == 0)
    }

    @Test("the executor is no option that a look-up must know: the hit stays as fast as any")
    func theExecutorIsNoReasonForASlowHit() {
        let executor = ThreadExecutor()
        defer { executor.stop() }
        #expect(RequestOptions(taskExecutor: executor).isUsual)
        var options = RequestOptions()
        options.taskExecutor = executor
        #expect(options.isUsual && options.taskExecutor === executor)
        options.partition = "one"
        #expect(!options.isUsual && options.taskExecutor === executor)
    }
}
