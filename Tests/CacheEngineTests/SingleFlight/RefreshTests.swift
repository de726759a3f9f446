import CacheEngine
import CacheTestSupport
import Testing

/// Refreshes of stale responses, and confirmations that requests share.
@Suite(.eachWay) struct RefreshTests {
    static let windowed: HeaderFields = [
        "Cache-Control": "max-age=10, stale-while-revalidate=100", "ETag": "\"1\"",
    ]

    @Test func s19StaleResponseIsServedWithoutWaitingWhileOneRefreshRuns() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        let callers = await scene.crowd(50)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(callers.allSatisfy { $0.info?.source == .stale })
        #expect(scene.origin.count == 2)
        // The clients are gone; the refresh goes on without them.
        for caller in callers { caller.cancel() }
        try await scene.answer(1, fields: Self.windowed, body: "new")
        let next = try #require(await scene.crowd(1).first)
        #expect(next.info?.source == .fresh && next.text == "new")
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    /// The response is stale on arrival, so no request may read it before it is stored.
    @Test(arguments: [
        "max-age=0, stale-while-revalidate=100", "max-age=1, stale-while-revalidate=99",
    ])
    func s19OneRefreshRunsUntilItsBodyIsStored(control: String) async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = ["Cache-Control": control, "Age": "1"]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 5)
        _ = await scene.crowd(1)
        let body = try await scene.begin(1, fields: fields)
        await body.feed("ne", scene.world)
        for _ in 0..<5 {
            let callers = await scene.crowd(10)
            #expect(callers.allSatisfy { $0.isComplete && $0.text == "old" })
        }
        #expect(scene.origin.count == 2)
        await body.feed("w", scene.world)
        await body.finish(scene.world)
        #expect(await scene.crowd(1).first?.text == "new")
        try #require(scene.origin.count == 3)
        try await scene.answer(2, fields: fields, body: "newer")
        #expect(await scene.crowd(1).first?.text == "newer")
        for exchange in scene.origin.held { exchange.answer(fields: fields, body: "newest") }
        await scene.world.settle()
        await scene.close()
    }

    /// A reload that may be answered from the store, and one that is passed by, leave the refresh alone.
    @Test(arguments: [
        "max-age=0, stale-while-revalidate=100", "max-age=10, stale-while-revalidate=100",
    ])
    func s19ReloadsBeginNoFurtherRefresh(control: String) async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = ["Cache-Control": control]
        let reload = CacheRequest.page.with { $0.fields["Cache-Control"] = "no-cache" }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "old")
        await scene.world.advance(seconds: 20)
        func look() async -> Caller {
            let caller = scene.world.ask(reload, policy: .cachedThenRefresh)
            await scene.world.settle()
            return caller
        }
        #expect(await look().text == "old")
        try #require(scene.origin.count == 2)
        let body = try await scene.begin(1, fields: fields)
        await body.feed("ne", scene.world)
        for _ in 0..<3 { #expect(await look().text == "old") }
        #expect(scene.origin.count == 2)
        let head = await scene.crowd(1, reload.with { $0.method = .head })
        try await scene.fail(2)
        #expect(head.allSatisfy { $0.end != nil })
        #expect(await look().text == "old")
        #expect(scene.origin.count == 3)
        await body.feed("w", scene.world)
        await body.finish(scene.world)
        #expect(await look().text == "new")
        for exchange in scene.origin.held { exchange.answer(fields: fields, body: "newer") }
        await scene.world.settle()
        await scene.close()
    }

    @Test func s20AFailedRefreshKeepsTheStaleAnswerAndBacksOff() async throws {
        let scene = try await FlightScene { $0.collapsing.refreshBackOff = .seconds(1) }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        var attempts = 0
        for second in 0..<30 {
            let caller = try #require(await scene.crowd(1).first)
            #expect(caller.isComplete && caller.text == "old", "second \(second)")
            for exchange in scene.origin.held {
                attempts += 1
                exchange.fail(CacheError(.originUnreachable, detail: "refused"))
            }
            await scene.world.settle()
            await scene.world.advance(seconds: 1)
        }
        // Attempts at 0, 1, 3, 7 and 15 seconds.
        #expect(attempts == 5)
        #expect(await scene.world.statistics.refreshFailures == 5)
        await scene.close()
    }

    @Test("an answer to any request ends the pause of the refreshes")
    func s20AnAnswerEndsTheBackOff() async throws {
        let scene = try await FlightScene { $0.collapsing.refreshBackOff = .seconds(1) }
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: Self.windowed, body: "old")
        await scene.world.advance(seconds: 20)
        // The pause after the last failure is 16 seconds.
        for pause in [1, 2, 4, 8, 1.5] {
            _ = await scene.crowd(1)
            let exchange = try #require(scene.origin.held.first)
            exchange.fail(CacheError(.originUnreachable, detail: "refused"))
            await scene.world.settle()
            await scene.world.advance(seconds: pause)
        }
        let reload = CacheRequest.page.with { $0.fields["Cache-Control"] = "no-cache" }
        let caller = try #require(await scene.crowd(1, reload).first)
        try await scene.answer(6, fields: Self.windowed, body: "new")
        #expect(caller.text == "new")
        await scene.world.advance(seconds: 11)
        #expect(await scene.crowd(1).first?.text == "new")
        #expect(scene.origin.held.count == 1)
        scene.origin.held.first?.answer(fields: Self.windowed, body: "newest")
        await scene.world.settle()
        await scene.close()
    }

    /// An answer with that status to a refresh leaves the stale response, and counts as a failure.
    private static func refreshFails(
        _ scene: FlightScene,
        status: Int,
        fields: HeaderFields
    ) async throws {
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: windowed, body: "old")
        await scene.world.advance(seconds: 20)
        _ = await scene.crowd(1)
        try await scene.answer(1, status: status, fields: fields, body: "down")
        let next = await scene.crowd(2)
        #expect(next.allSatisfy { $0.isComplete && $0.text == "old" })
        #expect(scene.origin.count == 2)
        let statistics = await scene.world.statistics
        #expect(statistics.refreshFailures == 1 && statistics.refreshes == 0)
        await scene.close()
    }

    @Test(arguments: [503, 401, 403, 429])
    func s20AnErrorStatusIsAFailedRefresh(status: Int) async throws {
        let scene = try await FlightScene()
        try await Self.refreshFails(scene, status: status, fields: [:])
    }

    /// The error states a time, and the application does not keep it.
    @Test func s20AnUnkeptErrorIsAFailedRefreshToo() async throws {
        let scene = try await FlightScene { $0.hooks.willStore = { $0.status == 200 ? $0 : nil } }
        try await Self.refreshFails(scene, status: 503, fields: ["Cache-Control": "max-age=5"])
    }

    @Test func s21FollowersShareTheRevalidationToo() async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "hello")
        await scene.world.advance(seconds: 11)
        let callers = await scene.crowd(100)
        #expect(scene.origin.count == 2)
        #expect(scene.origin.exchanges[1].request.fields["If-None-Match"] == "\"1\"")
        try await scene.answer(1, status: 304, fields: fields, body: "")
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "hello" && $0.status == 200 })
        #expect(callers.allSatisfy { $0.info?.source == .revalidated })
        let next = try #require(await scene.crowd(1).first)
        #expect(next.info?.source == .fresh && scene.origin.count == 2)
        await scene.close()
    }

    /// The origin's answers to the ranges of a whole that has become stale.
    enum RangeAnswer: CaseIterable, Sendable {
        case confirmation, whole, wholeWithoutValidator, unaskedPart
    }

    /// The refresh of a part has nothing for a request of the whole, which waits for none.
    @Test("requests of the whole share a fetch beside the refresh of a part")
    func wholesDoNotWaitForTheRefreshOfAPart() async throws {
        let scene = try await FlightScene()
        let fields: HeaderFields = [
            "Cache-Control": "max-age=10, stale-while-revalidate=60", "ETag": "\"1\"",
        ]
        var part = fields
        part["Content-Range"] = "bytes 0-1/4"
        let range = CacheRequest.page.with { $0.fields["Range"] = "bytes=0-1" }
        _ = await scene.crowd(1, range)
        try await scene.answer(0, status: 206, fields: part, body: "on")
        await scene.world.advance(seconds: 11)
        let stale = await scene.crowd(10, range)
        #expect(stale.allSatisfy { $0.info?.source == .stale && $0.text == "on" })
        #expect(scene.origin.count == 2)
        let wholes = await scene.crowd(10)
        #expect(scene.origin.count == 3)
        let late = await scene.crowd(10, range)
        #expect(late.allSatisfy { $0.info?.source == .stale })
        try await scene.answer(1, status: 206, fields: part, body: "on")
        #expect(wholes.allSatisfy { !$0.isComplete })
        try await scene.answer(2, fields: fields, body: "once")
        #expect(wholes.allSatisfy { $0.isComplete && $0.status == 200 && $0.text == "once" })
        #expect(scene.origin.count == 3)
        #expect(await scene.crowd(1).first?.info?.source == .fresh)
        #expect(await scene.crowd(1, range).first?.text == "on")
        await scene.close()
    }

    @Test("ranges of a stale whole share its confirmation, or the transfer of the next whole")
    func s21RangesOfAStaleWholeAreOneRequest() async throws {
        for answer in RangeAnswer.allCases {
            let scene = try await FlightScene()
            var fields: HeaderFields = ["Cache-Control": "max-age=10"]
            if answer != .wholeWithoutValidator { fields["ETag"] = "\"1\"" }
            _ = await scene.crowd(1)
            try await scene.answer(0, fields: fields, body: "hello")
            await scene.world.advance(seconds: 11)
            let range = CacheRequest.page.with { $0.fields["Range"] = "bytes=0-1" }
            let callers = await scene.crowd(10, range)
            var asked = 2
            #expect(scene.origin.count == asked, "\(answer)")
            if answer == .unaskedPart {
                var part = fields
                part["Content-Range"] = "bytes 2-3/5"
                try await scene.answer(1, status: 206, fields: part, body: "ll")
                asked = 3
            }
            #expect(scene.origin.count == asked, "\(answer)")
            #expect(scene.origin.exchanges.allSatisfy { !$0.request.fields.contains("Range") })
            if answer == .confirmation {
                try await scene.answer(1, status: 304, fields: fields, body: "")
            } else {
                try await scene.answer(asked - 1, body: "new")
            }
            let text = answer == .confirmation ? "he" : "ne"
            #expect(callers.allSatisfy { $0.isComplete && $0.status == 206 && $0.text == text })
            #expect(await scene.crowd(1, range).first?.info?.source == .fresh)
            #expect(scene.origin.count == asked, "\(answer)")
            await scene.close()
        }
    }

    /// The first client has the newest version, and the others need its content.
    @Test func s21ConditionOfTheFirstClientIsNotSentForAll() async throws {
        let scene = try await FlightScene {
            $0.policy.validation = .head
            $0.collapsing.hitForMissTime = .seconds(5)
        }
        let older: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
        let newer: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"2\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: older, body: "old")
        await scene.world.advance(seconds: 11)
        let known = CacheRequest.page.with { $0.fields["If-None-Match"] = "\"2\"" }
        let first = await scene.crowd(1, known)
        let others = await scene.crowd(10)
        try await scene.answer(1, fields: newer, body: "")
        try #require(scene.origin.count == 3)
        let asked = scene.origin.exchanges.map(\.request)
        #expect(asked[1].method == .head && asked[2].method == .get)
        #expect(!asked[2].fields.contains("If-None-Match"))
        try await scene.answer(2, fields: newer, body: "new")
        #expect(first.allSatisfy { $0.isComplete && $0.status == 304 })
        #expect(others.allSatisfy { $0.isComplete && $0.text == "new" })
        #expect(scene.origin.count == 3)
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    /// A request that looked before the 304 and boards after it sends no second one.
    @Test(arguments: raceSeeds)
    func s21RequestDuringA304SendsNoSecondOne(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "hello")
        await scene.world.advance(seconds: 11)
        var callers = await scene.crowd(2)
        scene.origin.held.first?.answer(status: 304, fields: fields, body: "")
        callers += await scene.crowd(6)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "hello" })
        #expect(scene.origin.count == 2)
        await scene.close()
    }
}
