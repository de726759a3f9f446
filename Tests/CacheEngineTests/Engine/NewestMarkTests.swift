import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// A soft purge slows down only the hits that it may concern.
@Suite struct NewestMarkTests {
    @Test func numbersOnlyGrowAndEverythingCountsForTags() {
        let mark = NewestMark()
        #expect(!mark.mayCover(0, hasTags: true))
        mark.raise(to: 5)
        mark.raise(to: 3)
        #expect(mark.mayCover(4, hasTags: true) && !mark.mayCover(5, hasTags: true))
        #expect(!mark.mayCover(0, hasTags: false))
        mark.raiseForEverything(to: 8)
        mark.raiseForEverything(to: 7)
        for hasTags in [false, true] {
            #expect(mark.mayCover(7, hasTags: hasTags) && !mark.mayCover(8, hasTags: hasTags))
        }
    }

    /// The way in which a hit is answered at once.
    private enum Way: Equatable { case readInPlace, checked, waits }

    private func way(_ stage: Stage, _ name: String) -> Way {
        let request = CacheRequest(url: "http://example.com/\(name)")
        switch stage.cache.immediateAnswer(to: request, bodyBytesMax: 100, { _ in }) {
        case .read: return .readInPlace
        case .response: return .checked
        case .none: return .waits
        }
    }

    /// While entries of a class are removed, no other store is permitted.
    @Test(arguments: [false, true])
    func softPurgeOfAURLHoldsBesideARemoval(hasDisk: Bool) async throws {
        let folder = try Folder()
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=600", "ETag": "\"1\""],
            body: "hello"
        )
        let stage = try await Stage(origin) {
            if hasDisk { $0.backing = .disk(path: folder.path, capacity: .megabytes(64)) }
        }
        _ = try await stage.get()
        let ledger = stage.cache.services.tiers.ledger
        ledger.begin(.storageClass(.session))
        _ = try await stage.cache.markStale(CacheRequest(url: Stage.url))
        ledger.end(.storageClass(.session))
        #expect(try await stage.get().source != .fresh)
        #expect(origin.count == 2)
        await stage.end()
    }

    /// A look-up that failed proves nothing: the entry may be there.
    @Test(arguments: [false, true])
    func softPurgeOfAURLHoldsThoughItsLookUpFails(ofOneVariant: Bool) async throws {
        let store = FailingLookUps()
        let origin = ScriptedOrigin(
            fields: ["Cache-Control": "max-age=600", "ETag": "\"1\""],
            body: "hello"
        )
        let stage = try await Stage(origin) { $0.backing = .custom(store) }
        _ = try await stage.get()
        await stage.cache.setMemoryCapacity(.bytes(0))
        await stage.cache.setMemoryCapacity(.megabytes(32))
        store.isFailing.store(true, ordering: .sequentiallyConsistent)
        let request = CacheRequest(url: Stage.url)
        if ofOneVariant {
            _ = try await stage.cache.markVariantStale(request)
        } else {
            _ = try await stage.cache.markStale(request)
        }
        store.isFailing.store(false, ordering: .sequentiallyConsistent)
        #expect(try await stage.get().source != .fresh)
        await stage.end()
    }

    @Test(arguments: [false, true])
    func hitsThatNoMarkConcernsAreReadInPlace(hasDisk: Bool) async throws {
        let folder = try Folder()
        let origin = ScriptedOrigin { request, _ in
            let name = String(request.url.split(separator: "/").last ?? "")
            var fields: HeaderFields = ["Cache-Control": "max-age=600", "ETag": "\"1\""]
            if name != "plain" { fields["Cache-Tag"] = String(name.prefix(1)) }
            return .whole(fields: fields, body: "hello")
        }
        let stage = try await Stage(origin) {
            if hasDisk { $0.backing = .disk(path: folder.path, capacity: .megabytes(64)) }
        }
        let base = "http://example.com/"
        for name in ["plain", "a", "b"] { _ = try await stage.get(base + name) }
        for name in ["plain", "a", "b"] { #expect(way(stage, name) == .readInPlace) }

        try await stage.cache.markStale(tagged: "a")
        #expect(way(stage, "plain") == .readInPlace)
        #expect(way(stage, "b") == .checked)
        #expect(way(stage, "a") == .waits)
        _ = try await stage.get(base + "a")
        _ = try await stage.get(base + "a2")
        #expect(way(stage, "a") == .readInPlace, "The origin has sent it since")
        #expect(way(stage, "a2") == .readInPlace)

        _ = try await stage.cache.purge(.everything, isSoft: true)
        for name in ["plain", "a", "a2", "b"] { #expect(way(stage, name) == .waits) }
        _ = try await stage.get(base + "plain")
        _ = try await stage.get(base + "b")
        #expect(way(stage, "plain") == .readInPlace)
        #expect(way(stage, "b") == .readInPlace)
        await stage.end()
    }
}

/// A store whose look-ups throw on demand.
private final class FailingLookUps: CacheStore {
    struct Failure: Error {}

    let isFailing = Atomic(false)
    private let inner = InMemoryStore()

    func entry(for key: StoreKey) async throws -> StoredEntry? {
        if isFailing.load(ordering: .sequentiallyConsistent) { throw Failure() }
        return try await inner.entry(for: key)
    }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome { try await inner.store(entry) }
    func remove(_ key: StoreKey) async throws -> Bool { try await inner.remove(key) }
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        try await inner.removeAll(in: scope)
    }
    func usage() async -> StoreUsage { await inner.usage() }
    func flush() async throws { try await inner.flush() }
}
