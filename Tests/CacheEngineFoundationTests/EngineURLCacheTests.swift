import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// Rows U1 to U12: the duties of a `URLCache` subclass.
@Suite(.timeLimit(.minutes(1))) struct EngineURLCacheTests {
    let cache: EngineURLCache

    init() async throws { cache = try await EngineURLCache.open(.ephemeral()) }

    private func request(_ path: String, _ fields: [String: String] = [:]) throws -> URLRequest {
        var request = URLRequest(url: try #require(URL(string: "http://example.test" + path)))
        for (name, value) in fields { request.setValue(value, forHTTPHeaderField: name) }
        return request
    }

    private func answer(
        _ text: String,
        _ fields: [String: String] = [:],
        userInfo: [AnyHashable: Any]? = nil,
        place: URLCache.StoragePolicy = .allowed
    ) throws -> CachedURLResponse {
        let url = try #require(URL(string: "http://example.test/"))
        let head = HTTPURLResponse(
            url: url,
            statusCode: 200,
            httpVersion: "HTTP/1.1",
            headerFields: fields
        )
        return CachedURLResponse(
            response: try #require(head),
            data: Data(text.utf8),
            userInfo: userInfo,
            storagePolicy: place
        )
    }

    private func text(_ path: String, _ fields: [String: String] = [:]) throws -> String? {
        let stored = cache.cachedResponse(for: try request(path, fields))
        return stored.map { String(decoding: $0.data, as: UTF8.self) }
    }

    @Test func storedAnswerIsFoundAgain() throws {
        #expect(try text("/a") == nil)
        let fields = ["Content-Type": "text/plain", "ETag": "\"1\""]
        cache.storeCachedResponse(try answer("hello", fields), for: try request("/a"))
        let found = try #require(cache.cachedResponse(for: try request("/a")))
        #expect(String(decoding: found.data, as: UTF8.self) == "hello")
        let head = try #require(found.response as? HTTPURLResponse)
        #expect(head.statusCode == 200)
        #expect(head.value(forHTTPHeaderField: "ETag") == "\"1\"")
        #expect(head.url?.absoluteString == "http://example.test/a")
    }

    @Test func wholeURLIsTheKey() throws {
        cache.storeCachedResponse(try answer("one"), for: try request("/a?x=1"))
        cache.storeCachedResponse(try answer("two"), for: try request("/a?x=2"))
        #expect(try text("/a?x=1") == "one")
        #expect(try text("/a?x=2") == "two")
        #expect(try text("/a") == nil)
    }

    @Test func variantIsSelected() throws {
        for type in ["text/html", "text/plain"] {
            let stored = try answer(type, ["Vary": "Accept", "Cache-Control": "max-age=60"])
            cache.storeCachedResponse(stored, for: try request("/v", ["Accept": type]))
        }
        #expect(try text("/v", ["Accept": "text/html"]) == "text/html")
        #expect(try text("/v", ["Accept": "text/plain"]) == "text/plain")
        #expect(try text("/v", ["Accept": "image/png"]) == nil)
    }

    @Test func answerToAnotherMethodIsNeitherStoredNorFound() throws {
        cache.storeCachedResponse(try answer("page"), for: try request("/m"))
        for method in ["HEAD", "POST", "PUT"] {
            var request = try request("/m")
            request.httpMethod = method
            cache.storeCachedResponse(try answer("other"), for: request)
            if method != "HEAD" { #expect(cache.cachedResponse(for: request) == nil) }
        }
        #expect(try text("/m") == "page")
    }

    @Test func storedAnswerHasTheClassOfTheCache() async throws {
        var configuration = HTTPCache.Configuration.ephemeral()
        configuration.caching.storageClass = .session
        let cache = try await EngineURLCache.open(configuration)
        cache.storeCachedResponse(try answer("x"), for: try request("/a"))
        #expect(cache.cachedResponse(for: try request("/a")) != nil)
        try await cache.cache.endSession()
        #expect(cache.cachedResponse(for: try request("/a")) == nil)
    }

    @Test func capacityIsThatOfTheCache() async throws {
        let folder = TemporaryFolder()
        let cache = try await EngineURLCache.open(
            HTTPCache.Configuration(
                memory: .megabytes(16),
                backing: .disk(path: folder.path + "/c", capacity: .megabytes(16))
            )
        )
        let other = EngineURLCache(cache.cache)
        cache.memoryCapacity = 8 << 20
        cache.diskCapacity = 32 << 20
        #expect(other.memoryCapacity == 8 << 20 && other.diskCapacity == 32 << 20)
        await cache.cache.setMemoryCapacity(.megabytes(4))
        try await cache.cache.setDiskCapacity(.megabytes(24))
        #expect(cache.memoryCapacity == 4 << 20 && cache.diskCapacity == 24 << 20)
        await cache.cache.shutDown()
    }

    @Test func storagePolicyIsObeyed() throws {
        cache.storeCachedResponse(try answer("no", place: .notAllowed), for: try request("/n"))
        #expect(try text("/n") == nil)
        let inMemory = try answer("memory", place: .allowedInMemoryOnly)
        cache.storeCachedResponse(inMemory, for: try request("/m"))
        #expect(try text("/m") == "memory")
    }

    @Test func userInfoComesBack() throws {
        let info: [AnyHashable: Any] = ["name": "value", "number": 7, "bytes": Data([1, 2])]
        cache.storeCachedResponse(try answer("x", userInfo: info), for: try request("/u"))
        let found = try #require(cache.cachedResponse(for: try request("/u"))?.userInfo)
        #expect(found["name"] as? String == "value")
        #expect(found["number"] as? Int == 7)
        #expect(found["bytes"] as? Data == Data([1, 2]))
        let other: [AnyHashable: Any] = ["name": "value", "url": try #require(URL(string: "/"))]
        cache.storeCachedResponse(try answer("x", userInfo: other), for: try request("/u"))
        #expect(cache.cachedResponse(for: try request("/u"))?.userInfo == nil)
    }

    @Test func removedAnswersAreGone() throws {
        for path in ["/a", "/b"] {
            cache.storeCachedResponse(try answer(path), for: try request(path))
        }
        cache.removeCachedResponse(for: try request("/a"))
        #expect(try text("/a") == nil)
        #expect(try text("/b") == "/b")
        cache.removeAllCachedResponses()
        #expect(try text("/b") == nil)
    }

    @Test func answersAreRemovedByTheirDate() throws {
        cache.storeCachedResponse(try answer("x"), for: try request("/a"))
        cache.removeCachedResponses(since: Date(timeIntervalSinceNow: 3600))
        cache.removeCachedResponses(before: Date(timeIntervalSinceNow: -3600))
        #expect(try text("/a") == "x")
        cache.removeCachedResponses(since: Date(timeIntervalSinceNow: -3600))
        #expect(try text("/a") == nil)
        cache.storeCachedResponse(try answer("y"), for: try request("/a"))
        cache.removeCachedResponses(before: Date(timeIntervalSinceNow: 3600))
        #expect(try text("/a") == nil)
        cache.removeCachedResponses(since: .distantPast)
        cache.removeCachedResponses(since: .distantFuture)
        // Not a time at all.
        cache.storeCachedResponse(try answer("z"), for: try request("/a"))
        cache.removeCachedResponses(since: Date(timeIntervalSince1970: .nan))
        #expect(try text("/a") == nil)
    }

    @Test func usageFollowsWhatIsStored() throws {
        let empty = cache.currentMemoryUsage
        let large = try answer(String(repeating: "x", count: 100_000))
        cache.storeCachedResponse(large, for: try request("/large"))
        #expect(cache.currentMemoryUsage >= empty + 100_000)
        #expect(cache.currentDiskUsage == 0)
        cache.removeAllCachedResponses()
        #expect(cache.currentMemoryUsage < empty + 100_000)
    }

    @Test func capacityIsReachedBeforeSettingReturns() throws {
        #expect(cache.memoryCapacity == 64 << 20)
        for number in 0..<200 {
            let body = try answer(String(repeating: "x", count: 50_000))
            cache.storeCachedResponse(body, for: try request("/\(number)"))
        }
        #expect(cache.currentMemoryUsage > 8 << 20)
        cache.memoryCapacity = 4 << 20
        #expect(cache.memoryCapacity == 4 << 20)
        #expect(cache.currentMemoryUsage <= 4 << 20)
    }

    @Test func zeroCapacityDoesNotDisableTheCache() throws {
        cache.storeCachedResponse(try answer("x"), for: try request("/a"))
        cache.memoryCapacity = 0
        cache.diskCapacity = 0
        #expect(cache.memoryCapacity == 64 << 20)
        #expect(try text("/a") == nil)
        cache.storeCachedResponse(try answer("y"), for: try request("/a"))
        #expect(try text("/a") == "y")
    }

    @Test func plainCacheDirectoryStaysUntouched() async throws {
        let folder = URL(filePath: NSTemporaryDirectory())
        let before = Set(try FileManager.default.contentsOfDirectory(atPath: folder.path()))
        cache.storeCachedResponse(try answer("x"), for: try request("/a"))
        let after = try FileManager.default.contentsOfDirectory(atPath: folder.path())
        #expect(
            !after.contains { $0.hasSuffix(".storedcachedurlresponse") && !before.contains($0) }
        )
    }

    @Test func answerThatIsNotHTTPIsKeptWithItsType() throws {
        let url = try #require(URL(string: "http://example.test/t"))
        let head = URLResponse(
            url: url,
            mimeType: "text/css",
            expectedContentLength: 3,
            textEncodingName: nil
        )
        let cached = CachedURLResponse(response: head, data: Data("a{}".utf8))
        cache.storeCachedResponse(cached, for: try request("/t"))
        let found = try #require(cache.cachedResponse(for: try request("/t")))
        #expect(found.response.mimeType == "text/css")
    }

    /// More callers than Swift's pool has threads, all blocked at the same time.
    ///
    /// A body over 1 MiB is copied by a task of its own, and each call of a custom store is one.
    @Test(arguments: [1, (1 << 20) + 1], [BackingStore.none, .custom(InMemoryStore())])
    func blockedCallersDoNotStarveTheirOwnWork(bytes: Int, backing: BackingStore) async throws {
        var configuration = HTTPCache.Configuration.ephemeral(.megabytes(256))
        configuration.backing = backing
        let cache = try await EngineURLCache.open(configuration)
        let answer = try answer(String(repeating: "x", count: bytes))
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<64 {
                group.addTask {
                    guard let request = try? request("/\(number)") else { return }
                    cache.storeCachedResponse(answer, for: request)
                    _ = cache.currentMemoryUsage
                    if number > 0 { cache.removeCachedResponse(for: request) }
                }
            }
        }
        #expect(cache.cachedResponse(for: try request("/0"))?.data.count == bytes)
        await cache.cache.shutDown()
    }
}
