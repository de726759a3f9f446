import CacheEngine
import CacheTestSupport
import Testing

/// The shutdown of a cache whose origin ignores the cancellation of its requests.
@Suite(.eachWay) struct ShutDownTests {
    /// Requests that share no fetch.
    private static let alone: [CacheRequest] = [
        .page.with { $0.method = .post },
        .page.with { $0.method = .delete },
        .page.with { $0.fields["Range"] = "bytes=0-1" },
        .page.with { $0.fields["Authorization"] = "Bearer me" },
        .page.with { $0.options.collapsing = .alone },
        .page.with { $0.options.policy = .reload },
    ]

    /// Shuts the cache down; the callers are told before the time limit of the shutdown.
    private func expectFailure(
        of callers: [Caller],
        _ scene: FlightScene,
        sourceLocation: SourceLocation = #_sourceLocation
    ) async {
        await scene.world.perform { await $0.shutDown() }
        #expect(
            callers.allSatisfy { $0.errorCode == .shutDown },
            sourceLocation: sourceLocation
        )
        await scene.world.advance(seconds: 12)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(await scene.world.work == WorkUnderWay(), sourceLocation: sourceLocation)
    }

    @Test(arguments: alone)
    func requestAloneFailsThoughTheOriginIgnoresItsCancellation(
        request: CacheRequest
    ) async throws {
        let scene = try await FlightScene(cancellation: .ignored)
        let callers = await scene.crowd(2, request)
        #expect(scene.origin.held.count == 2)
        await expectFailure(of: callers, scene)
    }

    /// The caller of a request that hangs while the origin answers others stays with it.
    @Test func isolatedRequestFailsThoughTheOriginIgnoresItsCancellation() async throws {
        let scene = try await FlightScene(cancellation: .ignored) {
            $0.collapsing.maximumWait = .seconds(2)
        }
        let hung = await scene.crowd(1)
        let waiter = await scene.crowd(1)
        await scene.world.advance(seconds: 4)
        #expect(scene.origin.count == 2)
        try await scene.answer(1)
        #expect(waiter.allSatisfy { $0.isComplete } && hung.allSatisfy { $0.end == nil })
        #expect(await scene.world.work.flights == 0)
        await expectFailure(of: hung, scene)
    }

    /// An asynchronous stream answers a cancellation with its end, as if it were complete.
    @Test func bodyThatTheShutdownCutsIsNotWhole() async throws {
        let (pieces, feed) = AsyncStream<ByteChunk>.makeStream()
        let store = RecordingStore()
        var configuration = HTTPCache.Configuration(backing: .custom(store))
        configuration.clock = TestClock()
        let cache = try await HTTPCache(configuration: configuration, origin: StreamOrigin(pieces))
        let response = try await cache.respond(to: .page)
        feed.yield(ByteChunk("half"))
        var body = response.body.makeAsyncIterator()
        #expect(try await body.next()?.text == "half")
        await cache.shutDown()
        await #expect(throws: CacheError.self) { while try await body.next() != nil {} }
        #expect(await store.count == 0)
    }

    @Test func nothingIsStoredAndNothingLostAfterTheShutdown() async throws {
        let folder = try Folder()
        let path = folder.path("cache")
        var configuration = HTTPCache.Configuration(
            backing: .disk(path: path, capacity: .megabytes(16))
        )
        configuration.clock = TestClock()
        let cache = try await HTTPCache(configuration: configuration, origin: ScriptedOrigin())
        _ = try await cache.respond(to: .page).body.collect()
        await cache.shutDown()
        let flushing = await #expect(throws: CacheError.self) { try await cache.flush() }
        #expect(flushing?.code == .shutDown)
        let response = CacheResponse(status: 200, body: BodyStream(ByteChunk("x")))
        let storing = await #expect(throws: CacheError.self) {
            try await cache.store(response, for: .page)
        }
        #expect(storing?.code == .shutDown)
    }

    @Test(.timeLimit(.minutes(1)), arguments: [false, true])
    func periodicWorkEndsWithTheCache(isCancelled: Bool) async throws {
        let clock = TestClock()
        var configuration = HTTPCache.Configuration()
        configuration.clock = clock
        let cache = try await HTTPCache(configuration: configuration, origin: ScriptedOrigin())
        let running = Task { await cache.run() }
        while clock.sleeperCount == 0 { await Task.yield() }
        if isCancelled { running.cancel() } else { await cache.shutDown() }
        await running.value
        let error = await #expect(throws: CacheError.self) { try await cache.respond(to: .page) }
        #expect(error?.code == .shutDown)
    }
}

/// An origin whose body is a stream of unknown length.
private struct StreamOrigin: Origin {
    private let pieces: AsyncStream<ByteChunk>

    init(_ pieces: AsyncStream<ByteChunk>) { self.pieces = pieces }

    func fetch(_ request: OriginRequest) async throws -> OriginResponse {
        OriginResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60"],
            body: BodyStream(pieces)
        )
    }
}
