import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

/// Policies that keep their word when the origin is gone, and the storage policy of a response.
@Suite(.timeLimit(.minutes(1))) struct PolicyPromiseTests {
    /// A policy that validates never serves a stored response that no origin has confirmed.
    @Test(arguments: [CachePolicy.reloadRevalidatingCacheData, CachePolicy(.askServerIfModified)])
    func validatingPolicyFailsWithoutAnOrigin(policy: CachePolicy) async throws {
        let fixture = try await LoadingFixture { $0.policy = policy }
        #expect(try await fixture.load().text == "v1")
        fixture.server.stop()
        #expect(await fixture.failure() != nil)
        #expect(await fixture.failure("/", .reloadRevalidatingCacheData) != nil)
        #expect(await fixture.failure("/", .reloadIgnoringLocalCacheData) != nil)
        #expect(try await fixture.load("/", .returnCacheDataElseLoad).text == "v1")
    }

    @Test func validatingPolicyFailsThroughTheDropInToo() async throws {
        let origin = try PolicyOrigin()
        let session = URLSession.using(try await EngineURLCache.open(.ephemeral()))
        let first = await origin.load("/fresh", .useProtocolCachePolicy, in: session)
        #expect(first.body == "\"v1\"")
        origin.server.stop()
        let failed = await origin.load("/fresh", .reloadRevalidatingCacheData, in: session)
        #expect(failed.body == "failed")
        let stored = await origin.load("/fresh", .returnCacheDataElseLoad, in: session)
        #expect(stored.body == "\"v1\"")
    }

    @Test("P7: reading and writing are two switches", arguments: [true, false], [true, false])
    func readingAndWritingAreTwoSwitchesOfASession(reads: Bool, writes: Bool) async throws {
        let fixture = try await LoadingFixture {
            $0.policy.reads = reads
            $0.policy.writes = writes
        }
        for _ in 0..<2 { try await fixture.load() }
        #expect(fixture.server.requestCount == (reads && writes ? 1 : 2))
        #expect(await fixture.cache.statistics.memory.entries == (writes ? 1 : 0))
        #expect(fixture.server.requests.allSatisfy { $0["If-None-Match"] == nil })
    }

    @Test(arguments: [URLCache.StoragePolicy.allowed, .allowedInMemoryOnly])
    func storagePolicyIsAsItWasStored(policy: URLCache.StoragePolicy) async throws {
        let fixture = try await LoadingFixture()
        let facade = try fixture.facade
        try await fixture.load()
        let loaded = try #require(facade.cachedResponse(for: fixture.request()))
        #expect(loaded.storagePolicy == .allowed)
        for userInfo in [nil, ["a": "b"] as [AnyHashable: Any]?] {
            let again = CachedURLResponse(
                response: loaded.response,
                data: loaded.data,
                userInfo: userInfo,
                storagePolicy: policy
            )
            facade.storeCachedResponse(again, for: try fixture.request())
            let found = try #require(facade.cachedResponse(for: fixture.request()))
            #expect(found.storagePolicy == policy)
        }
    }

    @Test func storagePolicyOfTheHookIsSeen() async throws {
        let fixture = try await LoadingFixture { $0.hooks.willStore = { $0.inMemoryOnly } }
        try await fixture.load()
        let found = try #require(try fixture.facade.cachedResponse(for: fixture.request()))
        #expect(found.storagePolicy == .allowedInMemoryOnly)
    }
}
