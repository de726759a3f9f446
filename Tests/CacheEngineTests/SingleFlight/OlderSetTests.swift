import CacheEngine
import CacheTestSupport
import Testing

/// Stored responses that an older set of selecting fields has selected, once the origin names
/// another set.
@Suite(.eachWay) struct OlderSetTests {
    private static let languages = ["de", "en", "fr", "it"]

    private static func asking(_ language: String) -> CacheRequest {
        .page.with {
            $0.fields["Accept-Encoding"] = "gzip"
            $0.fields["Accept-Language"] = language
        }
    }

    /// A cache with a stale response that is selected by fewer fields than the origin names now.
    private static func scene(
        seed: UInt64 = 1,
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> FlightScene {
        let scene = try await FlightScene(seed: seed, change)
        _ = await scene.crowd(1, asking("de"))
        let fields: HeaderFields = [
            "Cache-Control": "max-age=10", "Vary": "Accept-Encoding", "ETag": "\"1\"",
        ]
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 11)
        return scene
    }

    private static let narrower: HeaderFields = [
        "Cache-Control": "max-age=60", "Vary": "Accept-Encoding, Accept-Language",
    ]

    @Test(arguments: raceSeeds)
    func s17VariantsBehindAnOlderOneCostOneRequestEach(seed: UInt64) async throws {
        let scene = try await Self.scene(seed: seed)
        let callers = Self.languages.flatMap { language in
            (0..<3).map { _ in (language, scene.world.ask(Self.asking(language))) }
        }
        await scene.world.settle()
        #expect(scene.origin.count == 2)
        let first = try #require(scene.origin.exchanges.last?.request)
        #expect(first.fields["If-None-Match"] == "\"1\"")
        try await scene.answer(
            1,
            fields: Self.narrower,
            body: first.fields["Accept-Language"] ?? ""
        )
        // The other languages wait for the response that they all may have, and not for each other.
        #expect(scene.origin.held.count == Self.languages.count - 1)
        for exchange in scene.origin.held {
            let language = exchange.request.fields["Accept-Language"] ?? ""
            exchange.answer(fields: Self.narrower, body: language)
        }
        await scene.world.settle()
        for (language, caller) in callers { #expect(caller.isComplete && caller.text == language) }
        #expect(scene.origin.count == 1 + Self.languages.count)
        #expect(await scene.world.statistics.escapes.isEmpty)
        await scene.close()
    }

    /// The limit on the requests of one key counts those of each variant by itself.
    @Test func s13VariantsBehindAnOlderOneDoNotQueueForEachOther() async throws {
        let scene = try await Self.scene { $0.collapsing.maximumOriginRequestsPerKey = 1 }
        _ = await scene.crowd(1, Self.asking("de"))
        try await scene.answer(1, fields: Self.narrower, body: "de")
        for language in ["en", "fr", "it"] { _ = await scene.crowd(1, Self.asking(language)) }
        #expect(scene.origin.held.count == 3)
        for exchange in scene.origin.held { exchange.answer(fields: Self.narrower) }
        await scene.world.settle()
        #expect(scene.origin.count == 5)
        await scene.close()
    }

    /// A response with the older set of fields is found under its own key while it arrives.
    @Test(arguments: raceSeeds)
    func s17ResponseWithTheOlderSetIsJoinedWhileItArrives(seed: UInt64) async throws {
        let scene = try await Self.scene(seed: seed)
        _ = await scene.crowd(1, Self.asking("de"))
        try await scene.answer(1, fields: Self.narrower, body: "de")
        let first = try #require(await scene.crowd(1, Self.asking("en")).first)
        let older: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
        let body = try await scene.begin(2, fields: older)
        await body.feed("ne", scene.world)
        let second = try #require(await scene.crowd(1, Self.asking("fr")).first)
        #expect(scene.origin.count == 3)
        body.feed("w")
        body.finish()
        await scene.world.settle()
        for caller in [first, second] { #expect(caller.isComplete && caller.text == "new") }
        await scene.close()
    }

    /// A request that boards after the confirmation of an older variant finds it.
    @Test(arguments: raceSeeds)
    func s21RequestDuringTheConfirmationOfAnOlderVariantSendsNoSecondOne(
        seed: UInt64
    ) async throws {
        let scene = try await Self.scene(seed: seed)
        _ = await scene.crowd(1, Self.asking("de"))
        try await scene.answer(1, fields: Self.narrower, body: "de")
        var callers = await scene.crowd(2, Self.asking("en"))
        #expect(scene.origin.count == 3)
        scene.origin.held.first?.answer(
            status: 304,
            fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""],
            body: ""
        )
        callers += await scene.crowd(6, Self.asking("en"))
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(scene.origin.count == 3)
        await scene.close()
    }

    /// Requests that the newest set does not tell apart may select different responses by an older
    /// one.
    @Test func confirmedVariantIsForThoseWhoSelectIt() async throws {
        let scene = try await FlightScene()
        func asking(_ mark: String) -> CacheRequest {
            CacheRequest.speaking("de").with { $0.fields["X-Mark"] = mark }
        }
        let marked: HeaderFields = [
            "Cache-Control": "max-age=10", "Vary": "X-Mark", "ETag": "\"a\"",
        ]
        _ = await scene.crowd(1, asking("a"))
        try await scene.answer(0, fields: marked, body: "a")
        _ = await scene.crowd(1, .speaking("en"))
        try await scene.answer(1, fields: UnshareableTests.varying, body: "en")
        await scene.world.advance(seconds: 11)
        let selecting = try #require(await scene.crowd(1, asking("a")).first)
        let other = try #require(await scene.crowd(1, asking("b")).first)
        #expect(scene.origin.count == 3)
        try await scene.answer(2, status: 304, fields: marked, body: "")
        #expect(selecting.isComplete && selecting.text == "a")
        #expect(other.status == nil && scene.origin.count == 4)
        try await scene.answer(3, fields: UnshareableTests.varying, body: "b")
        #expect(other.isComplete && other.text == "b")
        await scene.close()
    }

    /// A response that an older set has selected keeps its own key.
    @Test func responseOfAnOlderSetIsConfirmedMarkedAndRemovedInItsPlace() async throws {
        let origin = ScriptedOrigin { request, _ in
            let isCoded = request.fields["Accept-Encoding"] == "gzip"
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "ETag": isCoded ? "\"coded\"" : "\"plain\"",
                "Vary": isCoded ? "Accept-Encoding" : "Accept-Encoding, Accept-Language",
            ]
            if request.fields["If-None-Match"] == fields["ETag"] {
                return OriginResponse(status: 304, fields: fields)
            }
            return .whole(fields: fields, body: isCoded ? "coded" : "plain")
        }
        let stage = try await Stage(origin)
        let coded: HeaderFields = ["Accept-Encoding": "gzip"]
        let german: HeaderFields = ["Accept-Language": "de"]
        let request = CacheRequest(url: Stage.url, fields: coded)
        for fields in [coded, german] { _ = try await stage.get(Stage.url, fields) }
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(Stage.url, coded).source == .revalidated)
        #expect(try await stage.get(Stage.url, coded).source == .fresh)
        #expect(try await stage.cache.markVariantStale(request))
        #expect(try await stage.get(Stage.url, coded).source == .revalidated)
        origin.follow { _, _ in .whole(fields: ["Cache-Control": "no-store"], body: "unkept") }
        #expect(try await stage.get(Stage.url, coded, policy: .revalidate).body == "unkept")
        #expect(try await !stage.holds(Stage.url, coded), "ended by what replaced it")
        #expect(try await stage.holds(Stage.url, german))
        await stage.end()
    }
}
