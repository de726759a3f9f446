import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Synchronization
import Testing

/// The delegate's `willCacheResponse`: modify, refuse, keep in memory.
@Suite(.timeLimit(.minutes(1))) struct ProtocolConsentTests {
    private func loaded(
        _ fields: [(String, String)] = [("Cache-Control", "max-age=60")],
        _ delegate: RecordingDelegate,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> LoadingFixture {
        let fixture = try await LoadingFixture(fields, delegate: delegate, storing: storing, change)
        fixture.session.dataTask(with: try fixture.request()).resume()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        return fixture
    }

    @Test func delegateIsAskedOnceAboutTheWholeBody() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded(delegate)
        #expect(delegate.seen.filter { $0 == .proposal("v1") }.count == 1)
        #expect(try await fixture.load().requests == 0)
        fixture.clock.advance(seconds: 61)
        #expect(try await fixture.load().requests == 1)
        #expect(try await fixture.load().requests == 0)
        #expect(delegate.seen.filter { $0 == .proposal("v1") }.count == 1)
    }

    @Test func refusedResponseIsNotStored() async throws {
        let fixture = try await loaded(RecordingDelegate(store: { $1(nil) }))
        #expect(await fixture.cache.statistics.memory.entries == 0)
        #expect(try await fixture.load().requests == 1)
    }

    /// The replaced entry must not answer for the refused one.
    @Test func refusedReplacementEndsTheStoredResponse() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(proposal.data == Data("v1".utf8) ? proposal : nil)
        })
        let fixture = try await loaded(delegate)
        fixture.changeResource()
        #expect(try await fixture.load("/", .reloadRevalidatingCacheData).text == "v2")
        #expect(await fixture.failure("/", .returnCacheDataDontLoad) == .resourceUnavailable)
    }

    /// An error that is not stored replaces nothing.
    @Test func refusedErrorLeavesTheStoredResponse() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(proposal.data == Data("v1".utf8) ? proposal : nil)
        })
        let fixture = try await loaded(delegate)
        fixture.changeResource(status: 503)
        #expect(try await fixture.load("/", .reloadRevalidatingCacheData).text == "v2")
        #expect(delegate.seen.contains(.proposal("v2")))
        #expect(try await fixture.load("/", .returnCacheDataDontLoad).text == "v1")
    }

    @Test func changedResponseIsStoredAndTheTaskGetsTheOrigins() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(
                CachedURLResponse(
                    response: proposal.response,
                    data: Data("changed".utf8),
                    userInfo: ["by": "delegate"],
                    storagePolicy: .allowed
                )
            )
        })
        let fixture = try await loaded(delegate)
        #expect(delegate.seen.contains(.data("v1")))
        #expect(try await fixture.load().text == "changed")
        let stored = try fixture.facade.cachedResponse(for: fixture.request())
        #expect(stored?.userInfo?["by"] as? String == "delegate")
    }

    @Test func responseThatIsTooLargeForMemoryIsStored() async throws {
        let folder = TemporaryFolder()
        let large = Data(repeating: 0x61, count: 2 << 20)
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(CachedURLResponse(response: proposal.response, data: large))
        })
        let fixture = try await loaded(delegate) {
            $0.memory = .megabytes(8)
            $0.backing = .disk(path: folder.path + "/c", capacity: .megabytes(64))
        }
        let hit = try await fixture.load()
        #expect(hit.requests == 0)
        #expect(hit.text.utf8.count == large.count)
        await fixture.cache.shutDown()
    }

    @Test func memoryOnlyResponseReachesNoFile() async throws {
        let folder = TemporaryFolder()
        let delegate = RecordingDelegate(store: { proposal, answer in
            answer(
                CachedURLResponse(
                    response: proposal.response,
                    data: Data("in memory, and in no file".utf8),
                    userInfo: nil,
                    storagePolicy: .allowedInMemoryOnly
                )
            )
        })
        let fixture = try await loaded(delegate: delegate, folder)
        #expect(try await fixture.load().requests == 0)
        let stored = try #require(try fixture.facade.cachedResponse(for: fixture.request()))
        #expect(stored.storagePolicy == .allowedInMemoryOnly)
        try await fixture.cache.flush()
        await fixture.cache.shutDown()
        let files = try #require(FileManager.default.enumerator(atPath: folder.path))
        var count = 0
        for case let name as String in files {
            guard let data = FileManager.default.contents(atPath: folder.path + "/" + name) else {
                continue
            }
            count += 1
            #expect(data.range(of: Data("in no file".utf8)) == nil, "\(name)")
            #expect(data.range(of: Data("v1".utf8)) == nil, "\(name)")
        }
        #expect(count > 0)
    }

    private func loaded(
        delegate: RecordingDelegate,
        _ folder: TemporaryFolder
    ) async throws -> LoadingFixture {
        try await loaded(delegate) {
            $0.backing = .disk(path: folder.path + "/c", capacity: .megabytes(16))
        }
    }

    @Test func responseThatMustNotBeStoredIsNotProposed() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded([("Cache-Control", "no-store")], delegate)
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }

    /// The cache itself answers the condition, so the task never sees the body.
    @Test func responseToAConditionIsNotProposed() async throws {
        let server = try LoopbackServer { _, connection in
            let fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
            connection.respond(200, fields, body: "x")
        }
        let delegate = RecordingDelegate()
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let session = URLSession.loading(cache, delegate: delegate)
        var request = URLRequest(url: try #require(URL(string: server.baseURL)))
        request.setValue("\"1\"", forHTTPHeaderField: "If-None-Match")
        session.dataTask(with: request).resume()
        #expect(await delegate.eventsToTheEnd() == [.response(304), .end(nil)])
        #expect(await cache.statistics.memory.entries == 0)
    }

    /// Neither is the whole, if the origin ignores the range: the task sees a part of it.
    @Test(arguments: [206, 200])
    func partIsNeitherProposedNorStored(status: Int) async throws {
        let server = try LoopbackServer { _, connection in
            var fields = [("Cache-Control", "max-age=60"), ("ETag", "\"1\"")]
            if status == 206 { fields.append(("Content-Range", "bytes 0-1/4")) }
            connection.respond(status, fields, body: status == 206 ? "ab" : "abcd")
        }
        let delegate = RecordingDelegate()
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let session = URLSession.loading(cache, delegate: delegate)
        var request = URLRequest(url: try #require(URL(string: server.baseURL)))
        request.setValue("bytes=0-1", forHTTPHeaderField: "Range")
        session.dataTask(with: request).resume()
        #expect(await delegate.eventsToTheEnd() == [.response(206), .data("ab"), .end(nil)])
        #expect(await cache.statistics.memory.entries == 0)
        #expect(await cache.statistics.refusals == ["unproposed-part": 1])
        #expect(server.requestCount == 1)
    }

    @Test func followedRedirectIsNeitherProposedNorStored() async throws {
        let server = try LoopbackServer { request, connection in
            let lifetime = ("Cache-Control", "max-age=60")
            if request.path == "/new" { return connection.respond(200, [lifetime], body: "new") }
            connection.respond(301, [("Location", "/new"), lifetime], body: "moved")
        }
        let delegate = RecordingDelegate()
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let session = URLSession.loading(cache, delegate: delegate)
        session.dataTask(with: try #require(URL(string: server.baseURL + "/old"))).resume()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        #expect(delegate.seen.contains(.proposal("new")))
        #expect(!delegate.seen.contains(.proposal("moved")))
        #expect(await cache.statistics.memory.entries == 1)
        #expect(server.requestCount == 2)
    }

    // MARK: - A response that the delegate lets pass is stored as any other

    @Test func consentedResponseObeysItsDirectives() async throws {
        let fields = [("Cache-Control", "no-cache, max-age=600")]
        let fixture = try await loaded(fields, RecordingDelegate())
        #expect(await fixture.cache.statistics.memory.entries == 1)
        let confirmed = try await fixture.load()
        #expect(confirmed.text == "v1" && confirmed.requests == 1)
        #expect(fixture.server.requests.last?["If-None-Match"] == "\"v1\"")
    }

    @Test func changedHeadDecidesAboutStoring() async throws {
        let delegate = RecordingDelegate(store: { proposal, answer in
            let head = proposal.response.url.flatMap {
                HTTPURLResponse(
                    url: $0,
                    statusCode: 200,
                    httpVersion: "HTTP/1.1",
                    headerFields: ["Cache-Control": "no-store"]
                )
            }
            answer(head.map { CachedURLResponse(response: $0, data: proposal.data) })
        })
        let fixture = try await loaded(delegate)
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }

    @Test func consentedResponseReplacesTheStoredOne() async throws {
        let fixture = try await loaded(RecordingDelegate())
        fixture.changeResource()
        #expect(try await fixture.load("/", .reloadRevalidatingCacheData).text == "v2")
        let hit = try await fixture.load()
        #expect(hit.text == "v2" && hit.requests == 0)
    }

    @Test func consentedResponseHasTheClassOfTheCache() async throws {
        let fixture = try await loaded(RecordingDelegate()) { $0.caching.storageClass = .session }
        #expect(try await fixture.cache.endSession().entries == 1)
        let named = try await loaded(RecordingDelegate()) { $0.policy.storageClass = .session }
        #expect(try await named.cache.endSession().entries == 1)
    }

    /// A load through a cache; the last bytes of the origin's body wait for a gate.
    private struct HaltedLoad {
        let cache: HTTPCache
        let session: URLSession
        let server: LoopbackServer
        let gate = LoopbackGate()
        let clock = TestClock()
        let first: URLSessionDataTask

        init(_ delegate: RecordingDelegate) async throws {
            server = try LoopbackServer { [gate] _, connection in
                connection.send("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n")
                connection.send("Content-Length: 6\r\n\r\none")
                gate.wait()
                connection.send("two")
            }
            var configuration = HTTPCache.Configuration.ephemeral()
            configuration.clock = clock
            cache = try await HTTPCache(configuration: configuration, origin: URLSessionOrigin())
            session = URLSession.loading(cache, delegate: delegate)
            first = session.dataTask(with: try #require(URL(string: server.baseURL)))
            await Self.start(first, delegate)
        }

        /// Starts another task, and returns when the delegate has its first bytes.
        func startTask(_ delegate: RecordingDelegate) async throws {
            let task = session.dataTask(with: try #require(URL(string: server.baseURL)))
            await Self.start(task, delegate)
        }

        private static func start(
            _ task: URLSessionDataTask,
            _ delegate: RecordingDelegate
        ) async {
            task.resume()
            for await event in delegate.events where event == .data("one") { break }
        }

        var request: CacheRequest { CacheRequest(url: server.baseURL) }
    }

    @Test func purgeDuringTheFetchBeatsTheConsent() async throws {
        let delegate = RecordingDelegate()
        let load = try await HaltedLoad(delegate)
        try await load.cache.remove(load.request)
        load.gate.open()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        #expect(delegate.seen.contains(.proposal("onetwo")))
        #expect(await load.cache.statistics.memory.entries == 0)
        #expect(load.server.requestCount == 1)
    }

    @Test func consentedResponseIsAsOldAsItsHead() async throws {
        let delegate = RecordingDelegate()
        let load = try await HaltedLoad(delegate)
        load.clock.advance(seconds: 30)
        load.gate.open()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        let stored = try await load.cache.storedResponse(for: load.request)
        #expect(stored?.info.age == .seconds(30))
        #expect(stored?.info.remainingLifetime == .seconds(30))
        #expect(load.server.requestCount == 1)
    }

    // MARK: - Tasks that share a fetch

    @Test func oneOfTheTasksThatShareIsProposed() async throws {
        let delegate = RecordingDelegate()
        let load = try await HaltedLoad(delegate)
        try await load.startTask(delegate)
        load.gate.open()
        for _ in 0..<2 { _ = await delegate.eventsToTheEnd() }
        #expect(delegate.seen.filter { $0 == .end(nil) }.count == 2)
        #expect(delegate.seen.filter { $0 == .proposal("onetwo") }.count == 1)
        #expect(await load.cache.statistics.memory.entries == 1)
        #expect(load.server.requestCount == 1)
    }

    @Test func joinedTaskIsProposedIfTheFirstIsCancelled() async throws {
        let delegate = RecordingDelegate()
        let load = try await HaltedLoad(delegate)
        try await load.startTask(delegate)
        load.first.cancel()
        #expect(await delegate.eventsToTheEnd().last == .end(URLError.cancelled.rawValue))
        load.gate.open()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        #expect(delegate.seen.filter { $0 == .proposal("onetwo") }.count == 1)
        let stored = try await load.cache.storedResponse(for: load.request)
        #expect(try await stored?.body.collect().text == "onetwo")
        #expect(load.server.requestCount == 1)
    }

    // MARK: - Tasks that the delegate is not asked about

    @Test func downloadIsStoredWithoutAsking() async throws {
        let delegate = RecordingDelegate(store: { $1(nil) })
        let fixture = try await LoadingFixture(delegate: delegate)
        fixture.session.downloadTask(with: try fixture.request()).resume()
        #expect(await delegate.eventsToTheEnd().last == .end(nil))
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(try await fixture.load().requests == 0)
    }

    // MARK: - Refreshes in the background

    private static let refreshed = [("Cache-Control", "max-age=60, stale-while-revalidate=600")]

    /// There is no task that the delegate could be asked with.
    @Test func refreshStoresNothingWithoutConsent() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded(Self.refreshed, delegate)
        fixture.changeResource()
        fixture.clock.advance(seconds: 61)
        #expect(try await fixture.load().text == "v1")
        await fixture.cache.waitUntilIdle()
        #expect(fixture.server.requestCount == 2)
        #expect(!delegate.seen.contains(.proposal("v2")))
        #expect(try await fixture.load("/", .returnCacheDataDontLoad).text == "v1")
        let next = try await fixture.load()
        #expect(next.text == "v2" && next.requests == 1)
        #expect(delegate.seen.contains(.proposal("v2")))
        #expect(try await fixture.load().requests == 0)
    }

    @Test func refreshThatConfirmsNeedsNoConsent() async throws {
        let delegate = RecordingDelegate()
        let fixture = try await loaded(Self.refreshed, delegate)
        fixture.clock.advance(seconds: 61)
        #expect(try await fixture.load().head.value(forHTTPHeaderField: "Age") == "61")
        await fixture.cache.waitUntilIdle()
        #expect(fixture.server.requestCount == 2)
        let renewed = try await fixture.load()
        #expect(renewed.requests == 0)
        #expect(renewed.head.value(forHTTPHeaderField: "Age") == "0")
    }

    // MARK: - Who decides

    @Test func hookOfTheCacheDecidesInPlaceOfTheDelegate() async throws {
        let delegate = RecordingDelegate(store: { $1(nil) })
        let fixture = try await loaded(delegate) { $0.hooks.willStore = { $0 } }
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(try await fixture.load().requests == 0)
    }

    @Test func rulesDecideIfTheDelegateIsNotToBeAsked() async throws {
        let delegate = RecordingDelegate(store: { $1(nil) })
        let fixture = try await loaded(delegate, storing: .byRules)
        #expect(!delegate.seen.contains(.proposal("v1")))
        #expect(try await fixture.load().requests == 0)
    }

    @Test func delegateThatNeverAnswersDelaysTheEndForALimitedTime() async throws {
        let delegate = RecordingDelegate(store: { _, _ in })
        let fixture = try await LoadingFixture(delegate: delegate)
        fixture.session.dataTask(with: try fixture.request()).resume()
        let isOver = Mutex(false)
        let ending = Task {
            _ = await delegate.eventsToTheEnd()
            isOver.withLock { $0 = true }
        }
        while !delegate.seen.contains(.proposal("v1")) { await Task.yield() }
        // The delegate may be asked before the time begins that it has.
        while !isOver.withLock({ $0 }) {
            fixture.clock.advance(seconds: 5)
            await Task.yield()
        }
        await ending.value
        #expect(delegate.seen.last == .end(nil))
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }
}

extension ProtocolConsentTests {
    private func loaded(
        _ delegate: RecordingDelegate,
        storing: CachingURLProtocol.Storing = .askingDelegate,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> LoadingFixture {
        try await loaded([("Cache-Control", "max-age=60")], delegate, storing: storing, change)
    }
}
