import CacheEngine
import CacheTestSupport
import Testing

/// Removals and limits while a flight is under way.
@Suite(.eachWay) struct RemovingTests {
    static let tagged: HeaderFields = ["Cache-Control": "max-age=60", "Cache-Tag": "news"]

    enum Removal: CaseIterable, Sendable {
        case ofTheKey, ofTheTag, ofEverything

        func perform(_ cache: HTTPCache) async {
            switch self {
            case .ofTheKey: _ = try? await cache.remove(.page)
            case .ofTheTag: _ = try? await cache.purge(tag: "news")
            case .ofEverything: _ = try? await cache.removeAll()
            }
        }
    }

    /// `RemovedTagTests` has the removals of tags: those of a response are known with its head.
    @Test(arguments: [Removal.ofTheKey, .ofEverything])
    func s18ARemovalBeatsTheFlightBeforeItsHead(removal: Removal) async throws {
        let scene = try await FlightScene()
        let before = await scene.crowd(3)
        await scene.world.perform(removal.perform)
        let after = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        try await scene.answer(0, fields: Self.tagged, body: "old")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(before.allSatisfy { $0.info?.isStored == false })
        #expect(after.allSatisfy { $0.status == nil })
        try await scene.answer(1, fields: Self.tagged, body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    @Test(arguments: Removal.allCases)
    func s18ARemovalBeatsTheFlightBeforeItsEnd(removal: Removal) async throws {
        let scene = try await FlightScene()
        let before = await scene.crowd(3)
        let body = try await scene.begin(0, fields: Self.tagged)
        await body.feed("o", scene.world)
        await scene.world.perform(removal.perform)
        let after = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        await body.feed("ld", scene.world)
        await body.finish(scene.world)
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        try await scene.answer(1, fields: Self.tagged, body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    @Test(arguments: Removal.allCases)
    func s18RemovedEntryIsNotStoredWhenItsFlightEnds(removal: Removal) async throws {
        let scene = try await FlightScene()
        let before = await scene.crowd(3)
        let body = try await scene.begin(0, fields: Self.tagged)
        await body.feed("o", scene.world)
        await scene.world.perform(removal.perform)
        await body.feed("ld", scene.world)
        await body.finish(scene.world)
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        let after = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        try await scene.answer(1, fields: Self.tagged, body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        await scene.close()
    }

    @Test("the removal of a variant beats the flight, be it known that there are variants or not")
    func s18TheRemovalOfAVariantBeatsTheFlight() async throws {
        for isKnownToVary in [false, true] {
            let scene = try await FlightScene()
            var asked = 0
            if isKnownToVary {
                _ = await scene.crowd(1, .speaking("fr"))
                try await scene.answer(0, fields: UnshareableTests.varying, body: "fr")
                asked = 1
            }
            let german = CacheRequest.speaking("de")
            let before = await scene.crowd(2, german)
            await scene.world.perform { _ = try? await $0.removeVariant(german) }
            let after = await scene.crowd(2, german)
            #expect(scene.origin.count == asked + 2)
            try await scene.answer(asked, fields: UnshareableTests.varying, body: "old")
            #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
            #expect(after.allSatisfy { $0.status == nil })
            try await scene.answer(asked + 1, fields: UnshareableTests.varying, body: "new")
            #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
            #expect(await scene.crowd(1, german).first?.text == "new")
            await scene.close()
        }
    }

    /// A fetch that began before a soft purge may bring the very response that was to be replaced.
    @Test func aSoftPurgeBeatsTheFlight() async throws {
        let scene = try await FlightScene()
        let before = await scene.crowd(2)
        await scene.world.perform { _ = try? await $0.markStale(.page) }
        let after = await scene.crowd(2)
        #expect(scene.origin.count == 2)
        try await scene.answer(0, fields: Self.tagged, body: "old")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        try await scene.answer(1, fields: Self.tagged, body: "new")
        #expect(after.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    private static func markStale(byTag isByTag: Bool, _ scene: FlightScene) async {
        await scene.world.perform { cache in
            if isByTag {
                try? await cache.markStale(tagged: "news")
            } else {
                _ = try? await cache.markStale(.page)
            }
        }
    }

    /// A fetch that began before a soft purge is not stored, and the marked entry is still of use.
    @Test(arguments: [true, false], OrderOfAnswersTests.Place.allCases)
    func softPurgeDuringARefreshKeepsTheEntry(
        isByTag: Bool,
        place: OrderOfAnswersTests.Place
    ) async throws {
        let scene = try await FlightScene { place.apply(to: &$0) }
        var fields = RefreshTests.windowed
        fields["Cache-Tag"] = "news"
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 20)
        #expect(await scene.crowd(1).first?.text == "old")
        await Self.markStale(byTag: isByTag, scene)
        try await scene.answer(1, fields: fields, body: "new")
        let next = try #require(await scene.crowd(1).first)
        #expect(next.text == "old" && next.info?.source == .stale)
        try #require(scene.origin.count == 3)
        try await scene.answer(2, fields: fields, body: "newest")
        #expect(await scene.crowd(1).first?.text == "newest")
        await scene.close()
    }

    /// Nothing is stored, whichever of the two ends first.
    @Test(arguments: raceSeeds)
    func s18RemovalDuringALandingStoresNothing(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        _ = await scene.crowd(1)
        scene.origin.held.first?.answer(body: "old")
        let isRemoved = scene.world.executor.start { [cache = scene.world.cache] in
            _ = try? await cache.remove(.page)
        }
        await scene.world.settle()
        await isRemoved.value
        let next = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2)
        try await scene.answer(1, body: "new")
        #expect(next.text == "new")
        await scene.close()
    }

    @Test func s18A304DoesNotBringBackWhatWasRemoved() async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 61)
        let before = await scene.crowd(2)
        #expect(scene.origin.exchanges.last?.request.fields["If-None-Match"] == "\"1\"")
        await scene.world.perform { _ = try? await $0.remove(.page) }
        try await scene.answer(1, status: 304, fields: fields, body: "")
        #expect(before.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(before.allSatisfy { $0.info?.isStored == false })
        #expect(before.allSatisfy { $0.info?.refusal == "removed-meanwhile" })
        let after = try #require(await scene.crowd(1).first)
        #expect(scene.origin.exchanges.last?.request.fields["If-None-Match"] == nil)
        try await scene.answer(2, fields: fields, body: "new")
        #expect(after.text == "new")
        await scene.close()
    }

    /// Two requests that have found a stale response, and wait for the only attempt of their fetch.
    private static func fetchOfAStaleResponse(
        varies: Bool = false
    ) async throws -> (FlightScene, [Caller]) {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        var fields: HeaderFields = ["Cache-Control": "max-age=10", "Cache-Tag": "news"]
        if varies { fields["Vary"] = "Accept-Encoding" }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 11)
        let callers = await scene.crowd(2)
        try #require(scene.origin.count == 2)
        return (scene, callers)
    }

    /// The removal has returned, so no request may get the response any more.
    @Test(arguments: Removal.allCases, [false, true])
    func s18RemovedResponseDoesNotStandIn(removal: Removal, varies: Bool) async throws {
        let (scene, callers) = try await Self.fetchOfAStaleResponse(varies: varies)
        await scene.world.perform(removal.perform)
        try await scene.fail(1)
        #expect(callers.allSatisfy { $0.status == nil && $0.errorCode == .originFailed })
        await scene.close()
    }

    /// The ledger notes the removal of a class for all keys.
    @Test(arguments: [false, true])
    func responseThatOthersWereRemovedBesideStandsIn(varies: Bool) async throws {
        let (scene, callers) = try await Self.fetchOfAStaleResponse(varies: varies)
        await scene.world.perform { _ = try? await $0.removeAll(in: .storageClass(.pinned)) }
        try await scene.fail(1)
        #expect(callers.allSatisfy { $0.text == "old" && $0.info?.source == .fallback })
        await scene.close()
    }

    @Test(arguments: [true, false])
    func softlyPurgedResponseStandsIn(isByTag: Bool) async throws {
        let (scene, callers) = try await Self.fetchOfAStaleResponse()
        await Self.markStale(byTag: isByTag, scene)
        try await scene.fail(1)
        #expect(callers.allSatisfy { $0.text == "old" && $0.info?.source == .fallback })
        await scene.close()
    }

    @Test func s22TheFlightTableIsBoundedAndOverflowIsBypass() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumFlights = 16 }
        let callers = (0..<200).map { number in
            scene.world.ask(CacheRequest(url: "http://example.com/\(number)"))
        }
        await scene.world.settle()
        #expect(scene.origin.held.count == 200)
        #expect(await scene.world.work.flights <= 16)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(callers.allSatisfy { $0.isComplete })
        let escapes = await scene.world.statistics.escapes
        #expect(escapes["tableFull", default: 0] >= 184)
        await scene.close()
    }

    @Test func shutDownFailsEveryWaiter() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(5)
        let alone = CacheRequest.page.with { $0.options.collapsing = .alone }
        let loner = try #require(await scene.crowd(1, alone).first)
        #expect(await scene.world.shutDown())
        #expect(callers.allSatisfy { $0.errorCode == .shutDown })
        #expect(loner.errorCode == .shutDown)
        #expect(await scene.crowd(1).first?.errorCode == .shutDown)
    }
}
