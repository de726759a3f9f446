import CacheEngine
import CacheEngineFoundation
import CacheTestSupport
import Foundation
import FoundationNetworking
import Testing

@testable import Snippets

/// Runs the code that the documentation shows.
@Suite(.timeLimit(.minutes(1))) struct SnippetTests {
    @Test func aStoreOfBytesGivesBackWhatItWasGiven() async throws {
        let store = ByteStore()
        let sample = try #require(await stored())
        #expect(await store.save(sample) == .stored)
        #expect(await store.load(sample.key)?.serialized == sample.serialized)
    }

    @Test func aBodyIsMadeAsItIsRead() async throws {
        let text = try await Origins.streamed().body.collect().text
        #expect(text.hasPrefix("1000\n999\n") && text.hasSuffix("\n1\n"))
    }

    @Test func anOriginInFrontOfAnotherSigns() async throws {
        let inner = ScriptedOrigin()
        let origin = SignedOrigin(inner: inner) { "secret" }
        _ = try await origin.fetch(OriginRequest(url: "http://example.com/"))
        #expect(inner.requests.first?.fields["Authorization"] == "Bearer secret")
    }

    @Test func signatureIsNoPartOfTheKey() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(fields: ["Cache-Control": "max-age=60"], body: request.url)
        }
        let cache = try await HTTPCache(configuration: Storing.keys(), origin: origin)
        for file in ["file?id=7&signature=", "file?id=8&signature="] {
            for signature in ["a", "b"] {
                let url = "http://example.com/" + file
                let response = try await cache.respond(to: CacheRequest(url: url + signature))
                #expect(try await response.body.collect().text == url + "a")
            }
        }
        #expect(origin.count == 2)
        await cache.shutDown()
    }

    @Test func sessionsOfBothModesLoadOnce() async throws {
        let server = try LoopbackServer { _, connection in
            connection.respond(200, [("Cache-Control", "max-age=60")], body: "{\"degrees\":7}")
        }
        for session in [try await exactSession(), try await dropInSession()] {
            let before = server.requestCount
            let url = try #require(URL(string: server.baseURL + "/\(before)"))
            for _ in 0..<2 { #expect(try await session.data(from: url).0.count == 13) }
            #expect(server.requestCount == before + 1)
        }
        let cache = try await HTTPCache(configuration: .ephemeral(), origin: URLSessionOrigin())
        let url = try #require(URL(string: server.baseURL + "/forecast"))
        #expect(try await SessionModes.forecast(cache, url).degrees == 7)
        #expect(server.requestCount == 3)
    }

    /// An entry as a custom store receives it.
    private func stored() async throws -> StoredEntry? {
        let store = Witness()
        let cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(backing: .custom(store)),
            origin: ScriptedOrigin()
        )
        _ = try await cache.respond(to: CacheRequest(url: "http://example.com/")).body.collect()
        await cache.shutDown()
        return await store.entry
    }
}

/// A store that keeps the last entry it was given.
private actor Witness: CacheStore {
    private(set) var entry: StoredEntry?

    func entry(for key: StoreKey) async throws -> StoredEntry? { nil }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        self.entry = entry
        return .stored
    }

    func remove(_ key: StoreKey) async throws -> Bool { false }
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount { RemovalCount() }
    func usage() async -> StoreUsage { StoreUsage() }
    func flush() async throws {}
}
