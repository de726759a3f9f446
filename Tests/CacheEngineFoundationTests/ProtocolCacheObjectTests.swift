import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// Rows U1 to U16: the cache object behind a session that loads through it.
@Suite(.timeLimit(.minutes(1))) struct ProtocolCacheObjectTests {
    private func backing(_ folder: TemporaryFolder, _ name: String = "cache") -> BackingStore {
        .disk(path: folder.path + "/" + name, capacity: .megabytes(16))
    }

    @Test("U1, U2: the directory belongs to one cache")
    func directoryServesOneSessionsCache() async throws {
        let folder = TemporaryFolder()
        let store = backing(folder)
        let fixture = try await LoadingFixture { $0.backing = store }
        try await fixture.load()
        #expect(!folder.names(in: "cache").isEmpty)
        await #expect {
            _ = try await LoadingFixture { $0.backing = store }
        } throws: {
            ($0 as? CacheError)?.code == .directoryInUse
        }
        await fixture.cache.shutDown()
    }

    @Test("U3: sessions over several directories are independent")
    func sessionsOverTwoDirectoriesAreIndependent() async throws {
        let folder = TemporaryFolder()
        let first = try await LoadingFixture { $0.backing = backing(folder, "one") }
        let second = URLSession.loading(
            try await HTTPCache(
                configuration: HTTPCache.Configuration(
                    backing: backing(folder, "two"),
                    mode: .private
                ),
                origin: URLSessionOrigin()
            )
        )
        try await first.load()
        _ = try await second.data(for: try first.request())
        #expect(first.server.requestCount == 2)
        try await first.cache.removeAll()
        _ = try await second.data(for: try first.request())
        #expect(first.server.requestCount == 2)
    }

    @Test("U4, U5, U6: look up, store and remove by hand, in the variant of the request")
    func responsesAreHandledDirectly() async throws {
        let fixture = try await LoadingFixture([
            ("Vary", "Accept"), ("Cache-Control", "max-age=60"),
        ])
        let facade = try fixture.facade
        #expect(facade.cache === fixture.cache)
        let html = try fixture.request("/", .useProtocolCachePolicy, ["Accept": "text/html"])
        #expect(facade.cachedResponse(for: html) == nil)
        try await fixture.load("/", .useProtocolCachePolicy, ["Accept": "text/html"])
        let stored = try #require(facade.cachedResponse(for: html))
        #expect(String(decoding: stored.data, as: UTF8.self) == "v1")
        let plain = try fixture.request("/", .useProtocolCachePolicy, ["Accept": "text/plain"])
        #expect(facade.cachedResponse(for: plain) == nil)
        let byHand = CachedURLResponse(response: stored.response, data: Data("by hand".utf8))
        facade.storeCachedResponse(byHand, for: plain)
        let hit = try await fixture.load("/", .useProtocolCachePolicy, ["Accept": "text/plain"])
        #expect(hit.text == "by hand" && hit.requests == 0)
        facade.removeCachedResponse(for: html)
        #expect(facade.cachedResponse(for: html) == nil)
    }

    @Test("U4, U5: look up and store with the fields that the session adds")
    func fieldsOfTheConfigurationSelectTheVariant() async throws {
        let server = try LoopbackServer { request, connection in
            let fields = [("Vary", "X-App"), ("Cache-Control", "max-age=60")]
            connection.respond(200, fields, body: request["X-App"] ?? "none")
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let configuration = URLSessionConfiguration.ephemeral
        configuration.httpAdditionalHeaders = ["X-App": "seven"]
        configuration.load(through: cache)
        let session = URLSession(configuration: configuration)
        let request = URLRequest(url: try #require(URL(string: server.baseURL + "/")))
        _ = try await session.data(for: request)
        let facade = try #require(configuration.urlCache)
        let stored = try #require(facade.cachedResponse(for: request))
        #expect(String(decoding: stored.data, as: UTF8.self) == "seven")
        let byHand = CachedURLResponse(response: stored.response, data: Data("by hand".utf8))
        facade.storeCachedResponse(byHand, for: request)
        let (data, _) = try await session.data(for: request)
        #expect(String(decoding: data, as: UTF8.self) == "by hand")
        #expect(server.requestCount == 1)
    }

    @Test("U7, U8: removal by time, and of everything")
    func sessionSeesRemovals() async throws {
        let fixture = try await LoadingFixture()
        let facade = try fixture.facade
        let now = Date(timeIntervalSince1970: TimeInterval(fixture.clock.nowSeconds))
        try await fixture.load()
        facade.removeCachedResponses(since: now.addingTimeInterval(60))
        #expect(try await fixture.load().requests == 0)
        facade.removeCachedResponses(since: now)
        #expect(try await fixture.load().requests == 1)
        facade.removeAllCachedResponses()
        #expect(try await fixture.load().requests == 1)
    }

    @Test("U9, U10, U11, U12: usage, capacity and memory pressure")
    func capacityHoldsBehindASession() async throws {
        let fixture = try await LoadingFixture { $0.memory = .megabytes(8) }
        let facade = try fixture.facade
        let empty = facade.currentMemoryUsage
        for number in 0..<50 { try await fixture.load("/\(number)") }
        #expect(facade.currentMemoryUsage > empty)
        #expect(facade.currentMemoryUsage <= 8 << 20)
        facade.memoryCapacity = 4 << 20
        #expect(facade.currentMemoryUsage <= 4 << 20)
        facade.memoryCapacity = 0
        #expect(try await fixture.load("/0").requests == 1)
        #expect(try await fixture.load("/0").requests == 0)
    }

    @Test("U13: responses survive a restart")
    func sessionFindsItsResponsesAfterARestart() async throws {
        let folder = TemporaryFolder()
        let first = try await LoadingFixture { $0.backing = backing(folder) }
        try await first.load("/kept")
        await first.cache.shutDown()
        let cache = try await HTTPCache(
            configuration: first.cache.configuration,
            origin: URLSessionOrigin()
        )
        let session = URLSession.loading(cache)
        _ = try await session.data(for: try first.request("/kept"))
        #expect(first.server.requestCount == 1)
        await cache.shutDown()
    }

    @Test("U14: the ephemeral preset writes no file")
    func ephemeralSessionWritesNoFile() async throws {
        let fixture = try await LoadingFixture()
        try await fixture.load()
        #expect(try fixture.facade.currentDiskUsage == 0)
        #expect(await fixture.cache.statistics.disk.bytes == 0)
    }

    @Test("U15: random use never confuses responses", arguments: 0..<4 as Range<UInt64>)
    func randomTasksGetTheirOwnResponses(seed: UInt64) async throws {
        let server = try LoopbackServer { request, connection in
            connection.respond(200, [("Cache-Control", "max-age=60")], body: request.target)
        }
        let cache = try await HTTPCache(
            configuration: .ephemeral(.megabytes(1)),
            origin: URLSessionOrigin()
        )
        let session = URLSession.loading(cache)
        var random = SeededRandom(seed: seed)
        for _ in 0..<60 {
            let target = "/\(random.next() % 8)"
            let request = URLRequest(url: try #require(URL(string: server.baseURL + target)))
            switch random.next() % 4 {
            case 0:
                let (file, _) = try await session.download(for: request)
                #expect(try String(contentsOf: file, encoding: .utf8) == target)
                try FileManager.default.removeItem(at: file)
            case 1: try await cache.removeAll()
            default:
                let (data, _) = try await session.data(for: request)
                #expect(String(decoding: data, as: UTF8.self) == target)
            }
        }
    }

    @Test("U16: long and odd URLs are found again")
    func longAndOddURLsAreFoundAgain() async throws {
        let fixture = try await LoadingFixture()
        let paths = [
            "/" + String(repeating: "a", count: 60_000), "/%C3%A4?x=%2F&y=a+b", "/a;b=c,d",
            "/?", "/?a=1&a=2", "/.well-known/x~y", "/a%00b",
        ]
        for path in paths {
            #expect(try await fixture.load(path).requests == 1, "\(path.prefix(20))")
            #expect(try await fixture.load(path).requests == 0, "\(path.prefix(20))")
        }
    }
}
