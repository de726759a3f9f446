import CacheEngine
import CacheTestSupport
import Testing

/// The state that one request leaves behind, and the bound on its harm to other requests.
@Suite(.eachWay) struct HarmTests {
    private static let evil = CacheRequest.page.with { $0.fields["X-Evil"] = "closes" }
    private static let unreachable = CacheError(.originUnreachable, detail: "refused")

    private static func fails(_ exchange: HeldOrigin.Exchange) {
        exchange.fail(CacheError(.originFailed, detail: "closed"))
    }

    @Test func failureIsSharedWithWaitersAndNoLaterRequest() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        let waiting = await scene.crowd(3)
        try await scene.fail(0)
        #expect(waiting.allSatisfy { $0.errorCode == .originFailed })
        let later = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2)
        try await scene.answer(1)
        #expect(later.isComplete && later.text == "hello")
        await scene.close()
    }

    @Test("a request that makes the origin close, again and again, costs nobody else an answer")
    func aRequestThatMakesTheOriginCloseFailsAlone() async throws {
        let scene = try await FlightScene()
        var victims: [Caller] = []
        for _ in 0..<20 {
            _ = await scene.crowd(1, Self.evil)
            for exchange in scene.origin.held { Self.fails(exchange) }
            await scene.world.settle()
            victims += await scene.crowd(3)
            while let exchange = scene.origin.held.first {
                exchange.answer(fields: UnshareableTests.unstorable)
                await scene.world.settle()
            }
        }
        #expect(victims.allSatisfy { $0.isComplete })
        await scene.close()
    }

    @Test("those who wait after many alike that fail are tried before the rest of those")
    func requestUnlikeTheFailedOneIsTriedNext() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 3 }
        let attackers = await scene.crowd(10, Self.evil)
        let victims = await scene.crowd(5)
        while let exchange = scene.origin.held.first {
            if exchange.request.fields.contains("X-Evil") {
                Self.fails(exchange)
            } else {
                exchange.answer()
            }
            await scene.world.settle()
        }
        #expect(victims.allSatisfy { $0.isComplete })
        #expect(attackers.filter { $0.isComplete }.count == 9)
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    @Test("where no connection comes about, what is stored stands in, and the origin has its rest")
    func anUnreachableOriginIsNotAskedAgainAtOnce() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        _ = await scene.crowd(1)
        let fields: HeaderFields = ["Cache-Control": "max-age=10, stale-if-error=100"]
        try await scene.answer(0, fields: fields, body: "stored")
        await scene.world.advance(seconds: 20)
        var callers = await scene.crowd(2)
        scene.origin.exchanges[1].fail(Self.unreachable)
        await scene.world.settle()
        callers += await scene.crowd(3)
        #expect(scene.origin.count == 2)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "stored" })
        #expect(callers.allSatisfy { $0.info?.source == .fallback })
        await scene.close()
    }

    @Test("a refresh whose request makes it fail bars the key for the shortest time only")
    func aProvokedFailureDoesNotGrowTheBackOff() async throws {
        let scene = try await FlightScene { $0.collapsing.refreshBackOff = .seconds(1) }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        for _ in 0..<10 {
            _ = await scene.crowd(1, Self.evil)
            #expect(scene.origin.held.count == 1)
            for exchange in scene.origin.held { Self.fails(exchange) }
            await scene.world.settle()
            await scene.world.advance(seconds: 1)
        }
        await scene.close()
    }

    @Test("a later refresh asks for the resource, not for what its client wanted besides")
    func refreshCarriesNoDirectivesOfItsClient() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        let wishful = CacheRequest.page.with {
            $0.fields["Cache-Control"] = "odd=1"
            $0.fields["Pragma"] = "x"
            $0.fields["Expect"] = "100-continue"
            $0.fields["Accept"] = "text/html"
        }
        _ = await scene.crowd(1, wishful)
        let asked = try #require(scene.origin.exchanges.dropFirst().first?.request.fields)
        for name in ["Cache-Control", "Pragma", "Expect"] {
            #expect(!asked.contains(name), "\(name)")
        }
        #expect(asked["Accept"] == "text/html" && asked["If-None-Match"] == "\"1\"")
        try await scene.answer(1, fields: RefreshTests.windowed, body: "new")
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    private static let authorized = CacheRequest.page.with {
        $0.fields["Authorization"] = "Basic YTpi"
    }

    @Test("a refresh with one client's credentials is joined by nobody, and marks no key")
    func refreshForOneClientConcernsNobodyElse() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        #expect(await scene.crowd(1, Self.authorized).first?.text == "old")
        #expect(scene.origin.count == 2)
        let reload = CacheRequest.page.with { $0.fields["Cache-Control"] = "no-cache" }
        var others = await scene.crowd(1, reload)
        #expect(scene.origin.count == 3)
        let another: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"2\""]
        try await scene.answer(1, fields: another, body: "yours")
        // The response has ended the entry, so the fetch from before is not for later requests.
        others += await scene.crowd(4)
        #expect(scene.origin.count == 4)
        for index in [2, 3] { try await scene.answer(index, body: "new") }
        #expect(others.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    @Test("a refresh that is for one client pauses those of such clients, and no other")
    func refreshForOneClientPausesNoOther() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        _ = await scene.crowd(1, Self.authorized)
        try await scene.answer(1, status: 304, fields: RefreshTests.windowed, body: "")
        #expect(await scene.crowd(3, Self.authorized).allSatisfy { $0.text == "old" })
        #expect(scene.origin.count == 2)
        #expect(await scene.crowd(3).allSatisfy { $0.text == "old" })
        #expect(scene.origin.count == 3)
        try await scene.answer(2, fields: RefreshTests.windowed, body: "new")
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    @Test("a refresh for one client that has no response yet holds up no refresh for all")
    func unansweredRefreshForOneClientHoldsUpNoOther() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        _ = await scene.crowd(1, Self.authorized)
        #expect(scene.origin.count == 2)
        #expect(await scene.crowd(3).allSatisfy { $0.text == "old" })
        #expect(scene.origin.count == 3)
        try await scene.answer(2, fields: RefreshTests.windowed, body: "new")
        try await scene.answer(1, status: 304, fields: RefreshTests.windowed, body: "")
        #expect(await scene.crowd(1).first?.text == "new")
        #expect(scene.origin.count == 3)
        await scene.close()
    }

    private static let logged = CacheRequest.page.with { $0.fields["Cookie"] = "a=b" }
    /// A page without explicit freshness: with cookies it is stored for nobody.
    private static let guessed: HeaderFields = [
        "Last-Modified": "Thu, 01 Jan 2015 00:00:00 GMT", "ETag": "\"1\"",
    ]

    @Test("an answer refused for the cookies of its request marks no key for those without any")
    func refusalForCookiesMarksNoKeyForOthers() async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1, Self.logged)
        let waiting = await scene.crowd(20)
        try await scene.answer(0, fields: Self.guessed, body: "yours")
        // The waiters share the next request, and so do those that come now.
        let later = await scene.crowd(20)
        #expect(scene.origin.held.count == 1)
        // Those with cookies wait for no response that they may not use.
        let logged = await scene.crowd(3, Self.logged)
        #expect(scene.origin.held.count == 4)
        for index in 2...4 { try await scene.answer(index, fields: Self.guessed, body: "yours") }
        #expect(logged.allSatisfy { $0.isComplete && $0.text == "yours" })
        try await scene.answer(1, fields: Self.guessed, body: "for all")
        #expect((waiting + later).allSatisfy { $0.isComplete && $0.text == "for all" })
        #expect(await scene.world.statistics.hitForMissMarks == 1)
        await scene.close()
    }

    @Test("a response that all get ends the mark for requests with cookies")
    func responseForAllEndsTheMarkForCookies() async throws {
        let scene = try await FlightScene {
            $0.mode = .shared
            $0.collapsing.hitForMissTime = .seconds(500)
        }
        _ = await scene.crowd(1, Self.logged)
        try await scene.answer(0, fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        _ = await scene.crowd(1)
        // Those without cookies get no response that says anything about cookies.
        try await scene.answer(1, fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
        _ = await scene.crowd(2, Self.logged)
        #expect(scene.origin.held.count == 2)
        for index in [2, 3] {
            try await scene.answer(index, fields: ["Cache-Control": "max-age=1"])
        }
        await scene.world.advance(seconds: 3)
        _ = await scene.crowd(4, Self.logged)
        #expect(scene.origin.held.count == 1)
        try await scene.answer(4)
        await scene.close()
    }

    @Test("a refresh refused for the cookies of its request pauses none for those without any")
    func refusalForCookiesPausesNoOtherRefresh() async throws {
        for status in [304, 200] {
            let scene = try await FlightScene {
                $0.mode = .shared
                $0.caching.maximumLifetime = .seconds(10)
                $0.caching.staleWhileRevalidate = .seconds(100)
            }
            _ = await scene.crowd(1)
            try await scene.answer(0, fields: Self.guessed, body: "old")
            await scene.world.advance(seconds: 20)
            #expect(await scene.crowd(1, Self.logged).first?.text == "old")
            try await scene.answer(1, status: status, fields: Self.guessed, body: "")
            // Another one with cookies would bring no more.
            #expect(await scene.crowd(3, Self.logged).allSatisfy { $0.text == "old" })
            #expect(scene.origin.count == 2)
            #expect(await scene.crowd(3).allSatisfy { $0.text == "old" })
            #expect(scene.origin.held.count == 1)
            try await scene.answer(2, fields: Self.guessed, body: "new")
            let after = await scene.crowd(1) + scene.crowd(1, Self.logged)
            #expect(after.allSatisfy { $0.text == "new" && $0.info?.source == .fresh })
            await scene.close()
        }
    }

    @Test("a HEAD under a key of its own is refreshed by a GET, which brings the content")
    func refreshOfAKeyedHeadFetchesTheContent() async throws {
        let scene = try await FlightScene()
        let keyed = CacheRequest.page.with { $0.options.key = "page" }
        _ = await scene.crowd(1, keyed)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        _ = await scene.crowd(1, keyed.with { $0.method = .head })
        #expect(scene.origin.exchanges.last?.request.method == .get)
        try await scene.answer(1, fields: RefreshTests.windowed, body: "new")
        #expect(await scene.crowd(1, keyed).first?.text == "new")
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    /// The statuses that a request, or its client's conduct, can bring about for a good URL.
    private static let provoked = [
        400, 401, 403, 405, 406, 407, 408, 411, 412, 413, 414, 415, 416, 417, 421, 422, 426, 428,
        429, 431, 501,
    ]

    @Test("an answer to one client's own fault says nothing about the key", arguments: provoked)
    func refusalOfOneRequestSetsNoMark(status: Int) async throws {
        for mode in [HTTPCache.Configuration.Mode.shared, .private] {
            let scene = try await FlightScene { $0.mode = mode }
            _ = await scene.crowd(1, Self.evil)
            try await scene.answer(0, status: status, fields: [:], body: "yours")
            let victims = await scene.crowd(4)
            #expect(scene.origin.held.count == 1)
            try await scene.answer(1)
            #expect(victims.allSatisfy { $0.isComplete && $0.text == "hello" })
            #expect(await scene.world.statistics.hitForMissMarks == 0)
            await scene.close()
        }
    }

    @Test("nor does such an answer to a refresh behind", arguments: provoked)
    func refusedRefreshSetsNoMark(status: Int) async throws {
        let scene = try await FlightScene { $0.mode = .shared }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: RefreshTests.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        #expect(await scene.crowd(1, Self.evil).first?.text == "old")
        try await scene.answer(1, status: status, fields: [:], body: "yours")
        await scene.world.advance(seconds: 100)
        let victims = await scene.crowd(4)
        #expect(scene.origin.held.count == 1)
        try await scene.answer(2)
        #expect(victims.allSatisfy { $0.isComplete && $0.text == "hello" })
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    @Test("a request that makes the origin hang holds the others up for one wait, and no longer")
    func hangingRequestDelaysOthersForOneWait() async throws {
        let scene = try await FlightScene {
            $0.collapsing.maximumWait = .seconds(4)
            $0.collapsing.maximumEscapes = 2
        }
        let attacker = try #require(await scene.crowd(1, Self.evil).first)
        let victims = await scene.crowd(50)
        for _ in 0..<7 {
            await scene.world.advance(seconds: 1)
            for exchange in scene.origin.held where !exchange.request.fields.contains("X-Evil") {
                exchange.answer()
            }
            await scene.world.settle()
        }
        #expect(victims.allSatisfy { $0.isComplete })
        #expect(scene.origin.count <= 6)
        #expect(attacker.end == nil)
        await scene.world.advance(seconds: 60)
        #expect(attacker.errorCode == .originTimedOut)
        await scene.close()
    }

    // MARK: Which requests may lead

    private static let followers: [CacheRequest] = [
        .page.with { $0.fields["Range"] = "bytes=0-1" },
        .page.with { $0.method = .head },
        .page.with { $0.fields["If-None-Match"] = "\"mine\"" },
    ]

    @Test("a request that cannot lead is passed over when the leader fails", arguments: followers)
    func onlyRequestsThatMayLeadTakeOver(follower: CacheRequest) async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        let special = try #require(await scene.crowd(1, follower).first)
        let rest = await scene.crowd(498)
        try await scene.fail(0)
        #expect(scene.origin.held.count == 1)
        let next = try #require(scene.origin.exchanges.dropFirst().first?.request)
        #expect(next.method == .get)
        #expect(!next.fields.contains("Range") && !next.fields.contains("If-None-Match"))
        try await scene.answer(1)
        #expect(rest.allSatisfy { $0.isComplete && $0.text == "hello" })
        #expect(special.isComplete && scene.origin.count == 2)
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    @Test("those who cannot lead ask for themselves when nobody is left who can")
    func requestsThatCannotLeadFetchAlone() async throws {
        let scene = try await FlightScene()
        let leader = try #require(await scene.crowd(1).first)
        var others: [Caller] = []
        for follower in Self.followers { others += await scene.crowd(1, follower) }
        try await scene.fail(0)
        #expect(leader.errorCode == .originFailed)
        #expect(scene.origin.held.count == Self.followers.count)
        for exchange in scene.origin.held { exchange.answer(fields: UnshareableTests.unstorable) }
        await scene.world.settle()
        #expect(others.allSatisfy { $0.isComplete })
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    // MARK: Time limits

    @Test("a head that never comes: every caller is told at its own limit, not after three")
    func everyCallerFailsAtItsOwnLimit() async throws {
        let scene = try await FlightScene { $0.originLimits.maximumHeadTime = .seconds(60) }
        let early = await scene.crowd(100)
        await scene.world.advance(seconds: 30)
        let late = await scene.crowd(10)
        await scene.world.advance(seconds: 33)
        #expect(early.allSatisfy { $0.errorCode == .originTimedOut })
        #expect(late.allSatisfy { $0.end == nil })
        await scene.world.advance(seconds: 30)
        #expect(late.allSatisfy { $0.errorCode == .originTimedOut })
        // The first leader, its successor, and the requests that escaped meanwhile.
        #expect(scene.origin.count <= 2 + 2 * 16)
        await scene.close()
    }

    // MARK: A removal between two fetches

    @Test("an answer that a removal keeps from being stored ends the entry of the later fetch")
    func refusedAnswerEndsTheEntryItOutdates() async throws {
        let scene = try await FlightScene()
        let first = try #require(await scene.crowd(1).first)
        await scene.world.perform { _ = try? await $0.remove(.page) }
        // The fetch from before the removal is outdated: this one is a second.
        let second = try #require(await scene.crowd(1).first)
        try await scene.answer(1, body: "older")
        #expect(second.text == "older")
        try await scene.answer(0, body: "newer")
        #expect(first.text == "newer")
        let third = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 3 && third.end == nil)
        try await scene.answer(2, body: "newer")
        #expect(third.text == "newer")
        await scene.close()
    }

    /// The same, if the body of the older response takes longer.
    @Test func refusedAnswerOutdatesAnOlderOneThatStillArrives() async throws {
        let scene = try await FlightScene()
        let first = try #require(await scene.crowd(1).first)
        await scene.world.perform { _ = try? await $0.remove(.page) }
        let second = try #require(await scene.crowd(1).first)
        let older = try await scene.begin(1)
        await older.feed("old", scene.world)
        try await scene.answer(0, body: "newer")
        #expect(first.text == "newer")
        await older.feed("er", scene.world)
        await older.finish(scene.world)
        #expect(second.text == "older")
        let third = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 3 && third.end == nil)
        try await scene.answer(2, body: "newer")
        #expect(third.text == "newer")
        await scene.close()
    }
}
