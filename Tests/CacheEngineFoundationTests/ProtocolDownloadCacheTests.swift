import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// Rows A4 to A30: the behaviour of a download cache, through a session that loads through it.
@Suite(.timeLimit(.minutes(1))) struct ProtocolDownloadCacheTests {
    private func fixture(
        _ bits: DownloadCachePolicy,
        lifetime: Int = 60,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> LoadingFixture {
        try await LoadingFixture([("Cache-Control", "max-age=\(lifetime)")]) {
            $0.policy = CachePolicy(bits)
            change(&$0)
        }
    }

    @Test("A4: not reading means a full response without a condition")
    func sessionThatDoesNotReadGetsAFullResponse() async throws {
        let fixture = try await fixture(.doNotReadFromCache)
        for _ in 0..<2 { #expect(try await fixture.load().requests == 1) }
        #expect(fixture.server.requests.allSatisfy { $0["If-None-Match"] == nil })
    }

    @Test("A5: not writing changes nothing")
    func sessionThatDoesNotWriteStoresNothing() async throws {
        let fixture = try await fixture(.doNotWriteToCache)
        for _ in 0..<2 { #expect(try await fixture.load().requests == 1) }
        #expect(await fixture.cache.statistics.memory.entries == 0)
    }

    @Test("A6, A7: asking when stale, and always")
    func sessionAsksWhenStaleOrAlways() async throws {
        let whenStale = try await fixture(.askServerIfModifiedWhenStale)
        #expect(try await whenStale.load().requests == 1)
        #expect(try await whenStale.load().requests == 0)
        whenStale.clock.advance(seconds: 61)
        #expect(try await whenStale.load().requests == 1)
        let always = try await fixture(.askServerIfModified)
        for _ in 0..<2 { #expect(try await always.load().text == "v1") }
        always.changeResource()
        #expect(try await always.load().text == "v2")
        #expect(always.server.requestCount == 3)
        #expect(always.server.requests.last?["If-None-Match"] == "\"v1\"")
    }

    @Test("A8, A9: loading only on a miss, or never")
    func sessionServesAnyAgeWithoutLoading() async throws {
        let fixture = try await fixture(.onlyLoadIfNotCached, lifetime: 1)
        #expect(try await fixture.load().requests == 1)
        fixture.clock.advance(seconds: 1_000)
        #expect(try await fixture.load().requests == 0)
        #expect(try await fixture.load("/", .returnCacheDataDontLoad).requests == 0)
        #expect(await fixture.failure("/other", .returnCacheDataDontLoad) == .resourceUnavailable)
        #expect(fixture.server.requestCount == 1)
    }

    @Test("A10: a stored response stands in for a failed load, if the policy says so")
    func sessionFallsBackToTheStoredResponse() async throws {
        let without = try await fixture(.askServerIfModified, lifetime: 1)
        let with = try await fixture([.askServerIfModified, .fallbackToCacheIfLoadFails])
        for fixture in [without, with] {
            try await fixture.load()
            fixture.server.stop()
        }
        #expect(try await with.load().text == "v1")
        let status = try await with.load().head.value(forHTTPHeaderField: "Cache-Status")
        #expect(status?.contains("detail=originUnreachable") == true, "\(status ?? "missing")")
        let code = await without.failure()
        #expect(code == .cannotConnectToHost || code == .networkConnectionLost)
    }

    @Test("A11: the cache's default policy applies to a request without one")
    func sessionUsesTheDefaultPolicyOfTheCache() async throws {
        let fixture = try await fixture(.dontLoad)
        #expect(await fixture.failure() == .resourceUnavailable)
        #expect(try await fixture.load("/", .reloadIgnoringLocalCacheData).requests == 1)
        #expect(try await fixture.load().requests == 0)
    }

    @Test("A12, A14: entries of the session class are cleared apart")
    func sessionEntriesAreClearedApart() async throws {
        let fixture = try await LoadingFixture { $0.caching.storageClass = .session }
        try await fixture.load()
        let removed = try await fixture.cache.removeAll(in: .storageClass(.session))
        #expect(removed.entries == 1 && removed.bytes > 0)
        #expect(try await fixture.load().requests == 1)
        try await fixture.cache.endSession()
        #expect(try await fixture.load().requests == 1)
    }

    @Test("A13: pinned entries are not evicted")
    func pinnedResponseOutlivesOthers() async throws {
        let fixture = try await LoadingFixture([("Cache-Control", "max-age=60")]) {
            $0.memory = .megabytes(1)
            $0.policy.storageClass = .pinned
        }
        try await fixture.load("/pinned")
        await fixture.cache.relieveMemoryPressure(keeping: 0.5)
        #expect(try await fixture.load("/pinned").requests == 0)
    }

    @Test("A15: the origin's refusals can be overridden by an explicit setting")
    func sessionStoresDespiteTheOrigin() async throws {
        let refused = try await LoadingFixture([("Cache-Control", "no-store")])
        let stored = try await LoadingFixture([("Cache-Control", "no-store")]) {
            $0.policy.respectsOriginDirectives = false
            $0.policy.lifetimeOverride = .seconds(60)
        }
        for _ in 0..<2 {
            try await refused.load()
            try await stored.load()
        }
        #expect(refused.server.requestCount == 2)
        #expect(stored.server.requestCount == 1)
    }

    @Test("A16: a lifetime of one's own, with the fields unchanged")
    func ownLifetimeHoldsInASession() async throws {
        let fixture = try await LoadingFixture([("Cache-Control", "max-age=1")]) {
            $0.policy.lifetimeOverride = .seconds(1_000)
        }
        try await fixture.load()
        fixture.clock.advance(seconds: 900)
        let hit = try await fixture.load()
        #expect(hit.requests == 0)
        #expect(hit.head.value(forHTTPHeaderField: "Cache-Control") == "max-age=1")
    }

    @Test("A20: every response says where it came from")
    func sessionSeesWhereAResponseCameFrom() async throws {
        let fixture = try await LoadingFixture()
        let miss = try await fixture.load().head.value(forHTTPHeaderField: "Cache-Status")
        let hit = try await fixture.load().head.value(forHTTPHeaderField: "Cache-Status")
        #expect(miss?.contains("fwd=uri-miss") == true, "\(miss ?? "missing")")
        #expect(hit?.contains("hit") == true, "\(hit ?? "missing")")
        #expect(try await fixture.load().head.value(forHTTPHeaderField: "Age") == "0")
    }

    @Test("A21: a body as a file, once from the origin and then from the cache")
    func downloadTaskIsAnsweredFromTheCache() async throws {
        let fixture = try await LoadingFixture()
        for _ in 0..<2 {
            let (file, _) = try await fixture.session.download(for: fixture.request())
            defer { try? FileManager.default.removeItem(at: file) }
            #expect(try String(contentsOf: file, encoding: .utf8) == "v1")
        }
        #expect(try await fixture.load().requests == 0)
        #expect(fixture.server.requestCount == 1)
    }

    @Test("A22: a store of one's own")
    func sessionLoadsThroughACustomStore() async throws {
        let store = InMemoryStore()
        let fixture = try await LoadingFixture { $0.backing = .custom(store) }
        try await fixture.load()
        await fixture.cache.waitUntilIdle()
        await fixture.cache.relieveMemoryPressure()
        #expect(try await fixture.load().requests == 0)
    }

    @Test("A23: no slash is stripped, and no fragment is part of the key")
    func sessionKeysKeepSlashesAndDropFragments() async throws {
        let fixture = try await LoadingFixture()
        #expect(try await fixture.load("/a").requests == 1)
        #expect(try await fixture.load("/a/").requests == 1)
        #expect(try await fixture.load("/a#part").requests == 0)
        #expect(try await fixture.load("/a?").requests == 1)
    }

    @Test("A24, A25: a body that URLSession decoded has neither coding nor length")
    func decodedBodyIsStoredDecoded() async throws {
        // "hi" as gzip.
        let packed: [UInt8] = [
            31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 203, 200, 4, 0, 172, 42, 147, 216, 2, 0, 0, 0,
        ]
        let server = try LoopbackServer { _, connection in
            let fields = [("Content-Encoding", "gzip"), ("Cache-Control", "max-age=60")]
            connection.respond(200, fields, bytes: packed)
        }
        let session = try await URLSession.loading()
        let url = try #require(URL(string: server.baseURL))
        for _ in 0..<2 {
            let (data, response) = try await session.data(from: url)
            let head = try #require(response as? HTTPURLResponse)
            #expect(String(decoding: data, as: UTF8.self) == "hi")
            #expect(head.value(forHTTPHeaderField: "Content-Encoding") == nil)
            #expect(head.value(forHTTPHeaderField: "Content-Length") != "22")
        }
        #expect(server.requestCount == 1)
    }

    @Test("A26: an option decides whether Set-Cookie is stored")
    func sessionReplaysCookiesIfTheCacheDoes() async throws {
        let fields = [("Set-Cookie", "id=7"), ("Cache-Control", "max-age=60")]
        let replayed = try await LoadingFixture(fields) {
            $0.mode = .shared
            $0.caching.cookies = .store
        }
        let stripped = try await LoadingFixture(fields) {
            $0.mode = .shared
            $0.caching.cookies = .strip
        }
        for fixture in [replayed, stripped] { try await fixture.load() }
        let stored = try await replayed.load()
        #expect(stored.requests == 0)
        #expect(stored.head.value(forHTTPHeaderField: "Set-Cookie") == "id=7")
        #expect(try await stripped.load().head.value(forHTTPHeaderField: "Set-Cookie") == nil)
    }

    @Test("A30: offline, only when changed, never changes")
    func threeUsesOfADownloadCacheInASession() async throws {
        let folder = TemporaryFolder()
        let backing = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(16))
        let first = try await LoadingFixture { $0.backing = backing }
        #expect(try await first.load("/x").text == "v1")
        first.changeResource()
        #expect(try await first.load("/x", .reloadRevalidatingCacheData).text == "v2")
        let url = try first.request("/x").url
        await first.cache.shutDown()
        first.server.stop()
        let second = try await LoadingFixture { $0.backing = backing }
        var offline = URLRequest(url: try #require(url))
        for policy in [
            URLRequest.CachePolicy.returnCacheDataDontLoad, .returnCacheDataElseLoad,
            .useProtocolCachePolicy,
        ] {
            offline.cachePolicy = policy
            let (data, _) = try await second.session.data(for: offline)
            #expect(String(decoding: data, as: UTF8.self) == "v2")
        }
        await second.cache.shutDown()
    }
}
