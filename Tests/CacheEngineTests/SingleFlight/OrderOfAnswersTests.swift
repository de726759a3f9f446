import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// A response whose body arrives slowly does not take the place of one whose head came later.
@Suite(.eachWay) struct OrderOfAnswersTests {
    private static let fields: HeaderFields = ["Cache-Control": "max-age=60"]
    private static let alone = CacheRequest.page.with { $0.options.collapsing = .alone }

    enum Place: CaseIterable, Sendable {
        case memory, customStore

        func apply(to configuration: inout HTTPCache.Configuration) {
            guard self == .customStore else { return }
            configuration.memory = .disabled
            configuration.backing = .custom(InMemoryStore())
        }
    }

    /// The way in which a newer response takes its place.
    enum Newer: CaseIterable, Sendable {
        case reload, uncollapsed, slowReload, byHand

        var policy: CachePolicy? { self == .uncollapsed ? nil : .reload }
        /// The requests that the origin gets for it.
        var requests: Int { self == .byHand ? 0 : 1 }
    }

    /// Stores "newer" while the first request's body arrives.
    private static func store(_ newer: Newer, _ scene: FlightScene) async throws {
        switch newer {
        case .reload, .uncollapsed:
            let request = newer == .uncollapsed ? alone : .page
            let caller = await scene.world.answer(request, policy: newer.policy)
            try await scene.answer(1, fields: fields, body: "newer")
            #expect(caller.isComplete && caller.text == "newer")
        case .slowReload:
            let caller = await scene.world.answer(.page, policy: .reload)
            let body = try await scene.begin(1, fields: fields)
            await body.feed("new", scene.world)
            await body.feed("er", scene.world)
            await body.finish(scene.world)
            #expect(caller.isComplete && caller.text == "newer")
        case .byHand:
            await scene.world.perform { cache in
                let body = BodyStream(ByteChunk("newer"))
                let response = CacheResponse(status: 200, fields: fields, body: body)
                _ = try? await cache.store(response, for: .page)
            }
        }
    }

    @Test(arguments: Newer.allCases, Place.allCases)
    func newerAnswerStays(newer: Newer, place: Place) async throws {
        for isFirstShared in [true, false] {
            let scene = try await FlightScene { place.apply(to: &$0) }
            let policy: CachePolicy? = isFirstShared ? nil : .reload
            let first = await scene.world.answer(.page, policy: policy)
            let body = try await scene.begin(0, fields: Self.fields)
            await body.feed("ol", scene.world)
            try await Self.store(newer, scene)
            await body.feed("der", scene.world)
            await body.finish(scene.world)
            #expect(first.isComplete && first.text == "older")
            let later = try #require(await scene.crowd(1).first)
            #expect(later.text == "newer" && later.info?.source == .fresh)
            #expect(scene.origin.count == 1 + newer.requests)
            await scene.close()
        }
    }

    @Test(arguments: Place.allCases)
    func laterHeadTakesThePlaceOfAnEarlierOne(place: Place) async throws {
        let scene = try await FlightScene { place.apply(to: &$0) }
        _ = await scene.world.answer(.page, policy: .reload)
        _ = await scene.world.answer(.page, policy: .reload)
        // The request that was sent first is answered last.
        let earlier = try await scene.begin(1, fields: Self.fields)
        let later = try await scene.begin(0, fields: Self.fields)
        await earlier.feed("earlier", scene.world)
        await earlier.finish(scene.world)
        #expect(await scene.crowd(1).first?.text == "earlier")
        await later.feed("later", scene.world)
        await later.finish(scene.world)
        #expect(await scene.crowd(1).first?.text == "later")
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    // MARK: Behind the memory

    private static let varying: HeaderFields = [
        "Cache-Control": "max-age=60", "Vary": "Accept-Language",
    ]

    /// A store that holds a response with these fields, and reloads of it that wait for the origin.
    ///
    /// The store's next look-up hangs until the store is released.
    private static func reloads(
        _ count: Int,
        of fields: HeaderFields
    ) async throws -> (StoreScene, HeldOrigin, [Caller]) {
        let origin = HeldOrigin()
        let scene = try await StoreScene(origin)
        _ = await scene.get()
        origin.exchanges.first?.answer(fields: fields, body: "first")
        await scene.simulation.settle()
        var reloads: [Caller] = []
        for _ in 0..<count { reloads.append(await scene.get(policy: .reload)) }
        try #require(origin.count == 1 + count)
        scene.store.follow(StoreScene.failing(.entry, first: 1, with: .hangsBefore(.ignored)))
        return (scene, origin, reloads)
    }

    /// A response that varies waits for the index of its resource, and a newer one may be stored
    /// meanwhile, which may or may not vary.
    @Test(arguments: [true, false], [true, false])
    func newerVariantStaysWhileAnOlderOneIsEntered(isWhole: Bool, varies: Bool) async throws {
        let (scene, origin, reloads) = try await Self.reloads(2, of: Self.varying)
        let (older, newer) = (reloads[0], reloads[1])
        let (world, exchanges) = (scene.simulation, origin.exchanges)
        let body = ManualBody()
        if isWhole {
            exchanges[1].answer(fields: Self.varying, body: "older")
        } else {
            exchanges[1].answer(fields: Self.varying, body: body)
        }
        await world.settle()
        #expect(scene.store.hungCount == 1)
        exchanges[2].answer(fields: varies ? Self.varying : Self.fields, body: "newer")
        await world.settle()
        #expect(newer.isComplete && newer.text == "newer")
        scene.store.release()
        await world.settle()
        if !isWhole {
            await body.feed("older", world)
            await body.finish(world)
        }
        #expect(older.isComplete && older.text == "older")
        #expect(await scene.body() == "newer")
        #expect(origin.count == 3)
        #expect(await world.shutDown())
    }

    /// The hook decides about a variant once its body is complete, which is then entered again.
    @Test func newerAnswerStaysWhileAnOlderVariantArrives() async throws {
        let scene = try await FlightScene { $0.hooks.willStore = { $0 } }
        let older = await scene.world.answer(.page, policy: .reload)
        let body = try await scene.begin(0, fields: Self.varying)
        await body.feed("ol", scene.world)
        let newer = await scene.world.answer(.page, policy: .reload)
        try await scene.answer(1, fields: Self.fields, body: "newer")
        #expect(newer.isComplete && newer.text == "newer")
        await body.feed("der", scene.world)
        await body.finish(scene.world)
        #expect(older.isComplete && older.text == "older")
        let later = try #require(await scene.crowd(1).first)
        #expect(later.text == "newer" && later.info?.source == .fresh)
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    /// Memory holds no index, so that both read it behind the memory: one before the other enters.
    @Test func variantsThatAreEnteredAtOnceAreBothFound() async throws {
        let origin = HeldOrigin()
        let scene = try await StoreScene(origin)
        let world = scene.simulation
        let requests = ["de", "en"].map { language in
            StoreScene.request.with { $0.fields["Accept-Language"] = language }
        }
        let first = await scene.get(requests[0], policy: .reload)
        let second = await scene.get(requests[1], policy: .reload)
        let exchanges = origin.exchanges
        try #require(exchanges.count == 2)
        scene.store.follow(StoreScene.failing(.entry, first: 1, with: .hangsAfter(.ignored)))
        exchanges[0].answer(fields: Self.varying, body: "de")
        await world.settle()
        #expect(scene.store.hungCount == 1)
        exchanges[1].answer(fields: Self.varying, body: "en")
        await world.settle()
        #expect(second.isComplete && second.text == "en")
        scene.store.release()
        await world.settle()
        #expect(first.isComplete && first.text == "de")
        #expect(await scene.body(requests[0]) == "de")
        #expect(await scene.body(requests[1]) == "en")
        #expect(origin.count == 2)
        #expect(await world.shutDown())
    }

    /// So does one that is stored by hand.
    @Test func newerVariantStaysWhileAnOlderOneIsStoredByHand() async throws {
        let (scene, origin, reloads) = try await Self.reloads(1, of: Self.varying)
        let (world, exchanges, newer) = (scene.simulation, origin.exchanges, reloads[0])
        let outcome = Mutex<StoreOutcome?>(nil)
        let older = CacheResponse(
            status: 200,
            fields: Self.varying,
            body: BodyStream(ByteChunk("older"))
        )
        _ = await scene.attempt { cache in
            let stored = try await cache.store(older, for: StoreScene.request)
            outcome.withLock { $0 = stored }
        }
        #expect(scene.store.hungCount == 1)
        exchanges[1].answer(fields: Self.varying, body: "newer")
        await world.settle()
        #expect(newer.isComplete && newer.text == "newer")
        scene.store.release()
        await world.settle()
        #expect(outcome.withLock { $0 } == .refused(.removedMeanwhile))
        #expect(await scene.body() == "newer")
        #expect(origin.count == 2)
        #expect(await world.shutDown())
    }

    /// A reload that is answered with what it must not keep looks up what that ends.
    @Test func newerAnswerStaysWhileAnOlderOneLooksForWhatItEnds() async throws {
        let (scene, origin, reloads) = try await Self.reloads(2, of: Self.fields)
        let (older, newer) = (reloads[0], reloads[1])
        let (world, exchanges) = (scene.simulation, origin.exchanges)
        exchanges[1].answer(fields: ["Cache-Control": "no-store"], body: "older")
        await world.settle()
        #expect(scene.store.hungCount == 1)
        exchanges[2].answer(fields: Self.fields, body: "newer")
        await world.settle()
        scene.store.release()
        await world.settle()
        #expect(newer.text == "newer" && older.text == "older")
        #expect(await scene.body() == "newer")
        #expect(origin.count == 3)
        #expect(await world.shutDown())
    }

    @Test("a confirmation outdates a body that still arrives")
    func confirmedAnswerStays() async throws {
        let scene = try await FlightScene()
        let tagged: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: tagged, body: "confirmed")
        await scene.world.advance(seconds: 11)
        _ = await scene.world.answer(.page, policy: .reload)
        let body = try await scene.begin(1, fields: Self.fields)
        await body.feed("ol", scene.world)
        let confirming = try #require(await scene.crowd(1).first)
        try await scene.answer(2, status: 304, fields: tagged, body: "")
        #expect(confirming.text == "confirmed")
        await body.feed("der", scene.world)
        await body.finish(scene.world)
        let later = try #require(await scene.crowd(1).first)
        #expect(later.text == "confirmed" && later.info?.source == .fresh)
        await scene.close()
    }

    /// A newer response that is too large to be kept ends what an older one has stored, and what it
    /// would store.
    @Test func answerThatIsNotKeptOutdatesOlderOnes() async throws {
        let scene = try await FlightScene { $0.memory = .megabytes(1) }
        let first = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0, fields: Self.fields)
        await body.feed("ol", scene.world)
        let newer = await scene.world.answer(.page, policy: .reload)
        let large = try await scene.begin(1, fields: Self.fields)
        let piece = String(repeating: "x", count: 64 << 10)
        for _ in 0..<4 { await large.feed(piece, scene.world) }
        await large.finish(scene.world)
        #expect(newer.isComplete && newer.bytes.count == 4 * piece.utf8.count)
        // No request joins the older body any more.
        let joining = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 3 && joining.status == nil)
        await body.feed("der", scene.world)
        await body.finish(scene.world)
        #expect(first.isComplete && first.text == "older")
        try await scene.answer(2, fields: Self.fields, body: "newest")
        #expect(joining.text == "newest")
        #expect(await scene.crowd(1).first?.text == "newest")
        await scene.close()
    }

    // MARK: Parts

    private static func part(_ range: String, tag: String) -> HeaderFields {
        ["Cache-Control": "max-age=60", "ETag": tag, "Content-Range": "bytes \(range)/10"]
    }

    private static func asking(for range: String) -> CacheRequest {
        .page.with { $0.fields["Range"] = "bytes=\(range)" }
    }

    /// Begins to answer the request with that index with a part whose body is still empty.
    private static func begin(
        _ index: Int,
        _ fields: HeaderFields,
        _ scene: FlightScene
    ) async throws -> ManualBody {
        let exchange = try #require(scene.origin.exchanges.dropFirst(index).first)
        let body = ManualBody()
        exchange.answer(status: 206, fields: fields, body: body)
        await scene.world.settle()
        return body
    }

    @Test("a slow part of an older version replaces neither a newer whole nor a newer part")
    func slowPartReplacesNothingNewer() async throws {
        for isWhole in [true, false] {
            let scene = try await FlightScene()
            let first = await scene.world.answer(Self.asking(for: "0-4"))
            let body = try await Self.begin(0, Self.part("0-4", tag: "\"1\""), scene)
            await body.feed("ol", scene.world)
            let request = isWhole ? CacheRequest.page : Self.asking(for: "2-6")
            _ = await scene.world.answer(request)
            var fields = Self.part("2-6", tag: "\"2\"")
            if isWhole { fields["Content-Range"] = nil }
            let status = isWhole ? 200 : 206
            try await scene.answer(1, status: status, fields: fields, body: "newer")
            await body.feed("der", scene.world)
            await body.finish(scene.world)
            #expect(first.isComplete && first.text == "older")
            let later = await scene.world.answer(request)
            #expect(later.text == "newer" && later.info?.source == .fresh, "whole: \(isWhole)")
            #expect(scene.origin.count == 2)
            await scene.close()
        }
    }

    @Test("parts of one version are joined in whatever order their bodies end")
    func parallelPartsAreJoined() async throws {
        let scene = try await FlightScene()
        let requests = ["0-4", "5-9"].map(Self.asking)
        for request in requests { _ = await scene.world.answer(request) }
        let first = try await Self.begin(0, Self.part("0-4", tag: "\"1\""), scene)
        let second = try await Self.begin(1, Self.part("5-9", tag: "\"1\""), scene)
        await second.feed("56789", scene.world)
        await second.finish(scene.world)
        await first.feed("01234", scene.world)
        await first.finish(scene.world)
        let whole = try #require(await scene.crowd(1).first)
        #expect(whole.text == "0123456789" && whole.info?.source == .fresh)
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    @Test("a part of the same version does not keep a whole out that began before it")
    func partLeavesItsOwnWholeAlone() async throws {
        let scene = try await FlightScene()
        let first = try #require(await scene.crowd(1).first)
        let whole: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
        let body = try await scene.begin(0, fields: whole)
        await body.feed("01234", scene.world)
        _ = await scene.world.answer(Self.asking(for: "0-4"), policy: .reload)
        try await scene.answer(
            1,
            status: 206,
            fields: Self.part("0-4", tag: "\"1\""),
            body: "01234"
        )
        await body.feed("56789", scene.world)
        await body.finish(scene.world)
        #expect(first.text == "0123456789")
        let later = try #require(await scene.crowd(1).first)
        #expect(later.text == "0123456789" && later.info?.source == .fresh)
        await scene.close()
    }
}
