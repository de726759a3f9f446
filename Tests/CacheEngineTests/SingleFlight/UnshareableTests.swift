import CacheEngine
import CacheTestSupport
import Testing

/// Responses that must not be shared, and the requests they must be kept from.
@Suite(.eachWay) struct UnshareableTests {
    static let unstorable: HeaderFields = ["Cache-Control": "no-store"]

    @Test func s12UncacheableResponseReleasesAllWaitersTogether() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(50)
        try await scene.answer(0, fields: Self.unstorable, body: "0")
        #expect(scene.origin.held.count == 49)
        for (index, exchange) in scene.origin.exchanges.enumerated().dropFirst() {
            exchange.answer(fields: Self.unstorable, body: "\(index)")
        }
        await scene.world.settle()
        #expect(Set(callers.map(\.text)).count == 50)
        #expect(callers.allSatisfy { $0.isComplete })
        await scene.close()
    }

    @Test func s12TheKeyIsMarkedForABoundedTime() async throws {
        let scene = try await FlightScene { $0.collapsing.hitForMissTime = .seconds(5) }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.unstorable)
        _ = await scene.crowd(3)
        #expect(scene.origin.held.count == 3)
        for exchange in scene.origin.held { exchange.answer(fields: Self.unstorable) }
        await scene.world.settle()
        await scene.world.advance(seconds: 6)
        _ = await scene.crowd(3)
        #expect(scene.origin.held.count == 1)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        let statistics = await scene.world.statistics
        #expect(statistics.hitForMissMarks == 1)
        #expect(statistics.escapes["hitForMiss"] == 3)
        await scene.close()
    }

    @Test func s12TheFirstCacheableAnswerRemovesTheMark() async throws {
        let scene = try await FlightScene { $0.collapsing.hitForMissTime = .seconds(500) }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.unstorable)
        _ = await scene.crowd(1)
        try await scene.answer(1, fields: ["Cache-Control": "max-age=1"])
        await scene.world.advance(seconds: 3)
        _ = await scene.crowd(4)
        #expect(scene.origin.held.count == 1)
        try await scene.answer(2)
        await scene.close()
    }

    @Test func s13TheRequestsOfOneKeyAreLimitedAtTheOrigin() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumOriginRequestsPerKey = 4 }
        let callers = await scene.crowd(100)
        try await scene.answer(0, fields: Self.unstorable)
        var answered = 1
        while answered < 100 {
            #expect(scene.origin.held.count <= 4)
            let held = try #require(scene.origin.held.first)
            held.answer(fields: Self.unstorable)
            await scene.world.settle()
            answered += 1
        }
        #expect(callers.allSatisfy { $0.isComplete })
        await scene.close()
    }

    @Test func s13RequestQueuedForTheOriginCanLeave() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumOriginRequestsPerKey = 1 }
        let alone = CacheRequest.page.with { $0.options.collapsing = .alone }
        let callers = await scene.crowd(10, alone)
        #expect(scene.origin.held.count == 1)
        for caller in callers.dropFirst() { caller.cancel() }
        await scene.world.settle()
        #expect(callers.dropFirst().filter { $0.error is CancellationError }.count == 9)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        await scene.close()
    }

    @Test(arguments: ["max-age=0", "no-cache", "max-age=0, must-revalidate"])
    func s14ResponseThatMustBeValidatedServesOnlyItsWaiters(
        control: String
    ) async throws {
        let scene = try await FlightScene()
        let waiting = await scene.crowd(5)
        let fields: HeaderFields = ["Cache-Control": control, "ETag": "\"1\""]
        let body = try await scene.begin(0, fields: fields)
        await body.feed("first ", scene.world)
        let late = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2 && late.status == nil)
        await body.feed("answer", scene.world)
        await body.finish(scene.world)
        #expect(waiting.allSatisfy { $0.isComplete && $0.text == "first answer" })
        try await scene.answer(1, fields: fields, body: "second answer")
        #expect(late.isComplete && late.text == "second answer")
        _ = await scene.crowd(1)
        #expect(scene.origin.exchanges.last?.request.fields["If-None-Match"] == "\"1\"")
        try await scene.answer(2, status: 304, fields: fields, body: "")
        await scene.close()
    }

    private static func logged(in name: String) -> CacheRequest {
        .page.with { $0.fields["Cookie"] = "user=\(name)" }
    }

    @Test(
        "an answer that nobody may reuse is not for waiters with cookies, unless its origin says so",
        arguments: [
            (["ETag": "\"1\""], false), (["Cache-Control": "no-cache", "ETag": "\"1\""], false),
            (["Cache-Control": "max-age=0", "ETag": "\"1\""], false),
            (["Cache-Control": "no-cache, max-age=60", "ETag": "\"1\""], false),
            (["Cache-Control": "public, no-cache", "ETag": "\"1\""], true),
            (["Cache-Control": "max-age=60", "Age": "60", "ETag": "\"1\""], true),
            (["Cache-Control": "max-age=60"], true),
        ] as [(HeaderFields, Bool)]
    )
    func s14AnswerForNobodyIsNotForWaitersWithCookies(
        fields: HeaderFields,
        isForAll: Bool
    ) async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        let plain = await scene.crowd(3)
        let ada = await scene.crowd(2, Self.logged(in: "ada"))
        #expect(scene.origin.count == 1)
        try await scene.answer(0, fields: fields, body: "nobody's")
        #expect(plain.allSatisfy { $0.isComplete && $0.text == "nobody's" })
        #expect(scene.origin.held.count == (isForAll ? 0 : 2))
        // They have seen that they share nothing: the next one waits for nobody.
        let late = isForAll ? [] : await scene.crowd(1) + scene.crowd(1, Self.logged(in: "bob"))
        #expect(scene.origin.held.count == (isForAll ? 0 : 4))
        for exchange in scene.origin.held {
            exchange.answer(fields: fields, body: exchange.request.fields["Cookie"] ?? "nobody's")
        }
        await scene.world.settle()
        #expect(ada.allSatisfy { $0.isComplete && $0.text == (isForAll ? "nobody's" : "user=ada") })
        #expect(late.map(\.text) == (isForAll ? [] : ["nobody's", "user=bob"]))
        #expect(await scene.world.statistics.hitForMissMarks == (isForAll ? 0 : 1))
        await scene.close()
    }

    @Test func s14AnswerForNobodyIsForAllWaitersOfAPrivateCache() async throws {
        let scene = try await FlightScene { $0.mode = .private }
        var callers = await scene.crowd(2, Self.logged(in: "ada"))
        callers += await scene.crowd(2)
        callers += await scene.crowd(2, Self.logged(in: "ada"))
        try await scene.answer(0, fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        #expect(scene.origin.count == 1 && callers.allSatisfy { $0.text == "hello" })
        await scene.close()
    }

    @Test func s14ConfirmationForNobodyIsNotForWaitersWithCookies() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        let fields: HeaderFields = ["Cache-Control": "no-cache", "ETag": "\"1\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "nobody's")
        let plain = await scene.crowd(2)
        let ada = await scene.crowd(1, Self.logged(in: "ada"))
        #expect(scene.origin.count == 2)
        try await scene.answer(1, status: 304, fields: fields, body: "")
        #expect(plain.allSatisfy { $0.isComplete && $0.text == "nobody's" })
        #expect(scene.origin.held.count == 1)
        try await scene.answer(2, fields: ["Cache-Control": "no-cache"], body: "ada's")
        #expect(ada.allSatisfy { $0.isComplete && $0.text == "ada's" })
        await scene.close()
    }

    @Test(
        "an answer to a request with cookies is for its asker, unless its origin says otherwise",
        arguments: [
            ("no-cache, max-age=0", false), ("max-age=0", false), ("no-cache", false),
            ("public, max-age=0", true), ("max-age=60", true),
        ]
    )
    func s15AnswerToCookiesIsForItsAsker(control: String, isForAll: Bool) async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        let fields: HeaderFields = ["Cache-Control": control, "ETag": "\"1\""]
        let ada = await scene.crowd(1, Self.logged(in: "ada"))
        let others = await scene.crowd(1, Self.logged(in: "bob")) + scene.crowd(2)
        try await scene.answer(0, fields: fields, body: "user=ada")
        // Bob asks for himself, and one of those without cookies for both.
        #expect(scene.origin.held.count == (isForAll ? 0 : 2))
        for exchange in scene.origin.held {
            exchange.answer(fields: fields, body: exchange.request.fields["Cookie"] ?? "nobody's")
        }
        await scene.world.settle()
        #expect(ada.map(\.text) == ["user=ada"])
        let expected =
            isForAll ? ["user=ada", "user=ada", "user=ada"] : ["user=bob", "nobody's", "nobody's"]
        #expect(others.map(\.text) == expected && others.allSatisfy { $0.isComplete })
        await scene.close()
    }

    @Test func s14AnswerThatHasBecomeStaleServesNoLaterRequest() async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = ["Cache-Control": "max-age=1, must-revalidate"]
        var readers = await scene.crowd(1)
        let body = try await scene.begin(0, fields: fields)
        await body.feed("a slow ", scene.world)
        await scene.world.advance(seconds: 0.5)
        readers += await scene.crowd(1)
        #expect(scene.origin.count == 1)
        await scene.world.advance(seconds: 49.5)
        let late = await scene.crowd(2)
        #expect(scene.origin.count == 2 && late.allSatisfy { $0.status == nil })
        try await scene.answer(1, fields: fields, body: "a quick one")
        #expect(late.allSatisfy { $0.isComplete && $0.text == "a quick one" })
        await body.feed("answer", scene.world)
        await body.finish(scene.world)
        #expect(readers.allSatisfy { $0.isComplete && $0.text == "a slow answer" })
        await scene.close()
    }

    @Test(
        arguments: [
            ("max-age=20", true), ("max-age=10", true), ("max-age=9", false),
            ("min-fresh=50", true), ("min-fresh=51", false), ("max-stale", true),
        ]
    )
    func s14AnswerIsJoinedIfItSuitsTheRequest(directive: String, isJoined: Bool) async throws {
        let scene = try await FlightScene()
        let first = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0)
        await body.feed("first ", scene.world)
        await scene.world.advance(seconds: 10)
        let wish = CacheRequest.page.with { $0.fields["Cache-Control"] = directive }
        let caller = try #require(await scene.crowd(1, wish).first)
        #expect(scene.origin.count == (isJoined ? 1 : 2))
        await body.feed("answer", scene.world)
        await body.finish(scene.world)
        #expect(first.isComplete && first.text == "first answer")
        // The answer that did not suit one request is stored for the others.
        let other = try #require(await scene.crowd(1).first)
        #expect(other.info?.source == .fresh && other.text == "first answer")
        if !isJoined { try await scene.answer(1, body: "own answer") }
        #expect(caller.isComplete)
        #expect(caller.text == (isJoined ? "first answer" : "own answer"))
        #expect(caller.info?.source == (isJoined ? .collapsed : .origin))
        await scene.close()
    }

    /// A confirmation with `no-store` answers only the request that was sent.
    @Test func s15ConfirmationWithNoStoreServesOnlyItsOwnRequest() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        try await scene.answer(
            0,
            fields: ["Cache-Control": "max-age=10", "ETag": "\"1\""],
            body: "old"
        )
        await scene.world.advance(seconds: 11)
        let callers = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        let confirmation: HeaderFields = ["Cache-Control": "no-store", "ETag": "\"1\""]
        try await scene.answer(1, status: 304, fields: confirmation, body: "")
        #expect(callers.filter { $0.text == "old" }.count == 1)
        #expect(scene.origin.held.count == 2)
        for exchange in scene.origin.held { exchange.answer(body: "new") }
        await scene.world.settle()
        #expect(callers.filter { $0.isComplete && $0.text == "new" }.count == 2)
        await scene.close()
    }

    @Test func s15CookieOfAConfirmationReachesItsAskerAlone() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1)
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
        try await scene.answer(0, fields: fields, body: "page")
        await scene.world.advance(seconds: 11)
        let callers = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        var confirmation = fields
        confirmation["Set-Cookie"] = "sid=1"
        try await scene.answer(1, status: 304, fields: confirmation, body: "")
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "page" })
        let cookies = callers.map { $0.fields.values("Set-Cookie") }
        #expect(cookies.filter { $0 == ["sid=1"] }.count == 1)
        #expect(cookies.filter(\.isEmpty).count == 2)
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    struct Personal: Sendable, CustomStringConvertible {
        let description: String
        let change: @Sendable (inout CacheRequest) -> Void
    }

    static let personal: [Personal] = [
        Personal(description: "Authorization") { $0.fields["Authorization"] = "Bearer me" },
        Personal(description: "Cookie") { $0.fields["Cookie"] = "me" },
        Personal(description: "Range") { $0.fields["Range"] = "bytes=0-3" },
        Personal(description: "If-None-Match") { $0.fields["If-None-Match"] = "\"me\"" },
        Personal(description: "If-Match") { $0.fields["If-Match"] = "\"me\"" },
        Personal(description: "no-store") { $0.fields["Cache-Control"] = "no-store" },
        Personal(description: "POST") { $0.method = .post },
        Personal(description: "PUT") { $0.method = .put },
    ]

    /// A personal request never gets the unshareable response of the leader.
    @Test(arguments: personal)
    func s15PersonalRequestsNeverGetAnothersUnshareableAnswer(personal: Personal) async throws {
        let scene = try await FlightScene { $0.caching.cookieRequests = .alone }
        let leader = try #require(await scene.crowd(1).first)
        let caller = try #require(await scene.crowd(1, .page.with(personal.change)).first)
        try await scene.answer(0, fields: ["Cache-Control": "private"], body: "the leader's")
        #expect(scene.origin.count == 2)
        try await scene.answer(1, fields: Self.unstorable, body: "my own")
        #expect(leader.text == "the leader's")
        #expect(caller.text == "my own")
        await scene.close()
    }

    /// No request joins a personal request.
    @Test(arguments: personal)
    func s15PersonalRequestsAreNotJoined(personal: Personal) async throws {
        let scene = try await FlightScene { $0.caching.cookieRequests = .alone }
        let owner = try #require(await scene.crowd(1, .page.with(personal.change)).first)
        let plain = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2)
        try await scene.answer(0, fields: Self.unstorable, body: "the owner's")
        try await scene.answer(1, body: "for all")
        #expect(owner.text == "the owner's" && plain.text == "for all")
        await scene.close()
    }

    @Test(arguments: [400, 401, 406, 407, 416, 425])
    func s15ResponsesToOneClientAreNotShared(status: Int) async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(3)
        try await scene.answer(0, status: status, body: "yours")
        #expect(callers.filter { $0.status == status }.count == 1)
        #expect(scene.origin.held.count == 2)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(callers.filter { $0.text == "hello" }.count == 2)
        await scene.close()
    }

    static let varying: HeaderFields = [
        "Cache-Control": "max-age=60", "Vary": "Accept-Language",
    ]

    @Test func s16KnownVariantsDoNotWaitOnEachOther() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1, .speaking("fr"))
        try await scene.answer(0, fields: Self.varying, body: "fr")
        let german = await scene.crowd(3, .speaking("de"))
        let english = await scene.crowd(3, .speaking("en"))
        #expect(scene.origin.held.count == 2)
        try await scene.answer(2, fields: Self.varying, body: "en")
        #expect(english.allSatisfy { $0.isComplete && $0.text == "en" })
        #expect(german.allSatisfy { $0.status == nil })
        try await scene.answer(1, fields: Self.varying, body: "de")
        #expect(german.allSatisfy { $0.isComplete && $0.text == "de" })
        await scene.close()
    }

    @Test(arguments: raceSeeds)
    func s17VariantsCostOneRequestEachInParallel(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        let languages = ["de", "en", "fr", "it", "nl"]
        let callers = languages.flatMap { language in
            (0..<3).map { _ in (language, scene.world.ask(.speaking(language))) }
        }
        await scene.world.settle()
        #expect(scene.origin.count == 1)
        let first = try #require(scene.origin.exchanges.first?.request.fields["Accept-Language"])
        let body = try await scene.begin(0, fields: Self.varying)
        #expect(scene.origin.count == languages.count)
        // A request for the variant under way joins the flight, although the variant's key has
        // changed.
        let late = try #require(await scene.crowd(1, .speaking(first)).first)
        #expect(scene.origin.count == languages.count)
        await body.feed(first, scene.world)
        await body.finish(scene.world)
        for exchange in scene.origin.held {
            let language = exchange.request.fields["Accept-Language"] ?? ""
            exchange.answer(fields: Self.varying, body: language)
        }
        await scene.world.settle()
        for (language, caller) in callers { #expect(caller.isComplete && caller.text == language) }
        #expect(late.isComplete && late.text == first)
        #expect(scene.origin.count == languages.count)
        await scene.close()
    }
}
