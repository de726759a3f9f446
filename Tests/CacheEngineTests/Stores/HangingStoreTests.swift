import CacheEngine
import CacheTestSupport
import Testing

/// A store that hangs: every wait for it has a limit, and ends when its task is cancelled.
@Suite(.timeLimit(.minutes(1))) struct HangingStoreTests {
    private static let hangs: [Misdeed] = [.hangsBefore(.honoured), .hangsBefore(.ignored)]

    private static func all(_ misdeed: Misdeed) -> NemesisPlan { .scripted { _ in misdeed } }

    @Test(arguments: hangs)
    func openingWaitsForNoStore(misdeed: Misdeed) async throws {
        let clock = TestClock()
        let store = NemesisStore(InMemoryStore(), clock: clock, plan: Self.all(misdeed))
        let world = SimulatedWorld(
            seed: 1,
            configuration: HTTPCache.Configuration(backing: .custom(store)),
            clock: clock
        )
        let opened = Attempt()
        let opening = world.open(ScriptedOrigin())
        world.executor.start {
            _ = await opening.value
            opened.end(.success(()))
        }
        await world.executor.settle()
        #expect(opened.hasEnded)
        store.release()
        await world.executor.settle()
    }

    @Test(arguments: hangs)
    func aLookUpThatHangsIsAMissAtItsLimit(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        scene.store.follow(StoreScene.failing(.entry, with: misdeed))
        let caller = await scene.get()
        #expect(caller.end == nil)
        await scene.simulation.advance(seconds: 6)
        #expect(caller.text == "v1")
        #expect(await scene.simulation.statistics.storageErrors == 1)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: hangs)
    func theTimeOfARequestHoldsWhileTheStoreHangs(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        scene.store.follow(StoreScene.failing(.entry, with: misdeed))
        var request = StoreScene.request
        request.options.timeout = .seconds(1)
        let caller = await scene.get(request)
        await scene.simulation.advance(seconds: 1)
        #expect(caller.end != nil)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    @Test func theTimeOfARequestCoversAllItsLookUps() async throws {
        let origin = StoreScene.countingOrigin(["Cache-Control": "max-age=600", "Vary": "X-A"])
        let scene = try await StoreScene(origin)
        #expect(await scene.body() == "v1")
        // The index of variants takes most of the time, the variant would take as long again.
        scene.store.follow(StoreScene.failing(.entry, with: .isSlow(seconds: 0.8)))
        var request = StoreScene.request
        request.options.timeout = .seconds(1)
        let caller = await scene.get(request)
        await scene.simulation.advance(seconds: 1)
        #expect(caller.errorCode == .deadlineExceeded)
        await scene.simulation.advance(seconds: 2)
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: hangs)
    func aCancelledRequestEndsAtOnceWhileTheStoreHangs(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        scene.store.follow(StoreScene.failing(.entry, with: misdeed))
        let caller = await scene.get()
        caller.cancel()
        await scene.simulation.settle()
        #expect(caller.error is CancellationError)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    /// The operations of an application that use the store.
    enum Work: CaseIterable, Sendable {
        case remove, purge, removeAll, flush, statistics, storedResponse

        func perform(_ cache: HTTPCache) async throws {
            switch self {
            case .remove: _ = try await cache.remove(StoreScene.request)
            case .purge: _ = try await cache.purge(tag: "news")
            case .removeAll: _ = try await cache.removeAll()
            case .flush: try await cache.flush()
            case .statistics: _ = await cache.statistics
            case .storedResponse: _ = try await cache.storedResponse(for: StoreScene.request)
            }
        }

        var throwsAtItsLimit: Bool { self != .statistics && self != .storedResponse }
    }

    @Test(arguments: hangs, Work.allCases)
    func workThatHangsEndsAtItsLimit(misdeed: Misdeed, work: Work) async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(Self.all(misdeed))
        let attempt = await scene.attempt { try await work.perform($0) }
        await scene.simulation.advance(seconds: 6)
        #expect(attempt.hasEnded)
        scene.store.follow(StoreScene.failing(.removeAll))
        if work.throwsAtItsLimit {
            #expect(attempt.code == .storageTimedOut)
            #expect(await scene.simulation.statistics.storageErrors > 0)
        }
        if work == .remove || work == .purge || work == .removeAll {
            #expect(await scene.body() == "v2", "What could not be removed is not read")
        }
        scene.store.follow(.harmless)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: hangs, Work.allCases)
    func workThatIsCancelledEndsAtOnce(misdeed: Misdeed, work: Work) async throws {
        let scene = try await StoreScene()
        #expect(await scene.body() == "v1")
        scene.store.follow(Self.all(misdeed))
        let attempt = await scene.attempt { try await work.perform($0) }
        attempt.cancel()
        await scene.simulation.settle()
        #expect(attempt.hasEnded)
        scene.store.follow(.harmless)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: [Misdeed.hangsBefore(.ignored), .hangsAfter(.ignored)])
    func aStoreThatEndsLateDoesNotOutliveARemoval(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        scene.store.follow(StoreScene.failing(.store, with: misdeed))
        #expect(await scene.body() == "v1")
        await scene.simulation.advance(seconds: 6)
        let removal = await scene.attempt { _ = try await $0.remove(StoreScene.request) }
        await scene.simulation.advance(seconds: 6)
        #expect(removal.code == .storageTimedOut)
        // The delayed store operation takes effect after the removal.
        scene.store.follow(.harmless)
        scene.store.release()
        await scene.simulation.settle()
        #expect(await scene.body() == "v2")
        #expect(await scene.simulation.shutDown())
    }

    @Test func aHangingKeyDoesNotHoldUpOthers() async throws {
        let scene = try await StoreScene()
        let other = CacheRequest(url: "http://example.com/other")
        scene.store.follow(
            .scripted {
                $0.subject.contains("com/a") && $0.method == .store ? .hangsBefore(.ignored) : .none
            }
        )
        #expect(await scene.body() == "v1")
        #expect(await scene.body(other) == "v1")
        #expect(scene.honest.holds("other"))
        let removal = await scene.attempt { _ = try await $0.remove(other) }
        #expect(removal.hasSucceeded)
        scene.store.follow(.harmless)
        scene.store.release()
        #expect(await scene.simulation.shutDown())
    }

    @Test func operationsOfManyKeysAreUnderWayAtATime() async throws {
        let scene = try await StoreScene()
        scene.store.follow(
            .scripted { $0.method == .store ? .isSlow(seconds: 0.02) : .none }
        )
        for number in 0..<160 {
            _ = await scene.get(CacheRequest(url: "http://example.com/\(number)"))
        }
        for _ in 0..<25 {
            scene.clock.advance(seconds: 0.02)
            await scene.simulation.settle()
        }
        #expect(scene.honest.count == 160)
        #expect(await scene.simulation.shutDown())
    }

    @Test(arguments: hangs)
    func shutDownEndsThoughTheStoreHangs(misdeed: Misdeed) async throws {
        let scene = try await StoreScene()
        scene.store.follow(Self.all(misdeed))
        let caller = await scene.get()
        let end = await scene.attempt { await $0.shutDown() }
        await scene.simulation.advance(seconds: 12)
        #expect(end.hasEnded)
        #expect(caller.end != nil)
        scene.store.release()
        await scene.simulation.settle()
    }

    @Test func shutDownEndsThoughTheOriginIgnoresItsCancellation() async throws {
        let origin = NemesisOrigin(
            ScriptedOrigin(),
            plan: .scripted { _ in .hangsBefore(.ignored) }
        )
        let scene = try await SimulatedCache(origin: origin)
        let caller = await scene.answer(StoreScene.request)
        let over = Attempt()
        await scene.perform { cache in
            await cache.shutDown()
            over.end(.success(()))
        }
        #expect(caller.errorCode == .shutDown)
        await scene.advance(seconds: 12)
        #expect(over.hasEnded)
        origin.release()
        await scene.settle()
        #expect(await scene.work == WorkUnderWay())
    }

    @Test func sessionsOfOtherCachesOnTheStoreAreLeftAlone() async throws {
        func change(_ configuration: inout HTTPCache.Configuration) {
            configuration.caching.storageClass = .session
        }
        let first = try await StoreScene { change(&$0) }
        #expect(await first.body() == "v1")
        let second = try await StoreScene(on: first.honest) { change(&$0) }
        #expect(await second.get().info?.source == .origin, "Another session's entry is not read")
        let third = CacheRequest(url: "http://example.com/third")
        #expect(await first.body(third) == "v1")
        let fourth = try await StoreScene(on: first.honest) { change(&$0) }
        #expect(await first.get(third).info?.source == .fresh, "The session goes on")
        #expect(await first.simulation.shutDown())
        #expect(await second.simulation.shutDown())
        #expect(await fourth.simulation.shutDown())
    }
}
