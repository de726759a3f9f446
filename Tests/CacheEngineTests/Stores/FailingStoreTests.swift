import CacheEngine
import CacheTestSupport
import Testing

/// A store that throws: the cache does not read entries that it failed to remove.
@Suite(.timeLimit(.minutes(1))) struct FailingStoreTests {
    private static let throwing: [Misdeed] = [.throwsBefore, .throwsAfter]

    @Test(arguments: throwing)
    func failedRemovalIsReportedAndHidesTheOldEntry(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.remove, with: misdeed))
        let removal = await scene.attempt { _ = try await $0.remove(StoreScene.request) }
        #expect(removal.code == .storageFailed)
        #expect(await scene.body() == "v2")
        #expect(await scene.simulation.shutDown())
    }

    @Test func removalThatThrowsIsRetriedUntilItSucceeds() async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.remove, first: 4))
        _ = await scene.attempt { _ = try await $0.remove(StoreScene.request) }
        #expect(scene.honest.count == 1)
        await scene.simulation.advance(seconds: 20)
        #expect(scene.honest.count == 0)
        let removals = scene.store.calls.filter { $0.method == .remove }
        #expect(removals.count == 5)
        #expect(await scene.simulation.statistics.storageErrors == 4)
        #expect(await scene.simulation.shutDown())
    }

    @Test func invalidationThatThrowsLeavesNothingToRead() async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.remove))
        _ = await scene.get(CacheRequest(method: .post, url: "http://example.com/a"))
        scene.store.follow(StoreScene.failing(.remove))
        #expect(await scene.body() == "v2")
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: throwing)
    func storeThatThrowsDoesNotBringBackTheOldAnswer(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.store, with: misdeed))
        #expect(await scene.body(policy: .reload) == "v2")
        let next = await scene.body()
        #expect(next == "v3", "What could not be stored is unknown: the origin is asked")
        scene.store.follow(.harmless)
        await scene.simulation.advance(seconds: 20)
        #expect(await scene.simulation.shutDown())
    }

    @Test func removalAfterAFailedReplacementIsRetried() async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.store, first: 1))
        #expect(await scene.body(policy: .reload) == "v2")
        await scene.simulation.advance(seconds: 5)
        #expect(scene.honest.count == 0)
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: throwing)
    func failedPurgeIsReportedAndHidesTheOldEntry(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.removeAll, first: 1, with: misdeed))
        let purge = await scene.attempt { _ = try await $0.purge(tag: "news") }
        #expect(purge.code == .storageFailed)
        #expect(await scene.body() == "v2")
        await scene.simulation.advance(seconds: 5)
        #expect(scene.store.calls.count { $0.method == .removeAll } >= 2)
        scene.store.follow(.harmless)
        #expect(await scene.simulation.shutDown())
    }

    @Test func aPurgeThatCannotBeCarriedOutLeavesOtherEntriesReadable() async throws {
        let other = CacheRequest(url: "http://example.com/other")
        let origin = ScriptedOrigin { request, number in
            let tag = request.url.hasSuffix("other") ? "sport" : "news"
            return .whole(
                fields: ["Cache-Control": "max-age=600", "Cache-Tag": tag],
                body: "answer \(number)"
            )
        }
        let scene = try await StoreScene(origin)
        #expect(await scene.body() == "answer 1")
        #expect(await scene.body(other) == "answer 2")
        scene.store.follow(StoreScene.failing(.removeAll))
        _ = await scene.attempt { _ = try await $0.purge(tag: "news") }
        #expect(await scene.body(other) == "answer 2")
        #expect(await scene.body() == "answer 3")
        #expect(await scene.simulation.shutDown())
    }

    @Test func anEntryReadBeforeALateRemovalIsLookedUpAgain() async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(StoreScene.failing(.removeAll, first: 1))
        let purge = await scene.attempt { _ = try await $0.purge(tag: "news") }
        #expect(purge.code == .storageFailed)
        // The store reads the entry, and returns it after the removal has succeeded.
        scene.store.follow(
            StoreScene.failing(.entry, first: 1, with: .hangsAfter(.ignored))
        )
        let caller = await scene.get()
        #expect(caller.end == nil && scene.honest.count == 1)
        await scene.simulation.advance(seconds: 2)
        #expect(scene.honest.count == 0)
        scene.store.release()
        await scene.simulation.settle()
        #expect(caller.text == "v2")
        #expect(await scene.simulation.shutDown())
    }

    @Test func aLyingStoreMixesUpNoKeysAndCountsNothingIntoOverflow() async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        for lie in [Misdeed.Lie.mixesUp, .damages, .miscounts] {
            scene.store.follow(.scripted { _ in .lies(lie) })
            let caller = await scene.get()
            #expect(caller.isComplete && caller.text.hasPrefix("v"))
            let removal = await scene.attempt { _ = try await $0.removeAll() }
            #expect(removal.hasSucceeded)
            _ = await scene.simulation.statistics
            scene.store.follow(.harmless)
            _ = await scene.body()
        }
        #expect(await scene.simulation.shutDown())
    }
}
