import CacheEngine
import CacheTestSupport
import Testing

/// The responses of a crowd when its one fetch succeeds.
@Suite(.eachWay) struct SharingTests {
    @Test func s01TenThousandMissesAreOneRequest() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(10_000)
        #expect(scene.origin.count == 1)
        let body = String(repeating: "byte for byte, ", count: 1_000)
        try await scene.answer(0, body: body)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == body })
        #expect(callers.filter { $0.info?.source == .origin }.count == 1)
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test(arguments: raceSeeds)
    func s01TheOriginIsAskedOnceInWhateverOrderMissesCome(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        var callers = (0..<12).map { _ in scene.world.ask(.page) }
        scene.world.executor.start { [origin = scene.origin] in
            for _ in 0..<20 where origin.count == 0 { await Task.yield() }
            origin.exchanges.first?.answer()
        }
        await scene.world.settle()
        callers += await scene.crowd(4)
        scene.origin.held.first?.answer()
        await scene.world.settle()
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "hello" })
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s02FollowersGetTheHeadWithoutTimePassing() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(100)
        #expect(callers.allSatisfy { $0.status == nil })
        let body = try await scene.begin(0)
        #expect(callers.allSatisfy { $0.status == 200 && $0.end == nil })
        #expect(scene.world.clock.monotonicNanoseconds == 0)
        await body.finish(scene.world)
        await scene.close()
    }

    @Test func s03FollowersReadBeforeTheBodyEnds() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(10)
        let body = try await scene.begin(0)
        await body.feed("first ", scene.world)
        #expect(callers.allSatisfy { $0.text == "first " && $0.end == nil })
        await body.feed("second", scene.world)
        await body.finish(scene.world)
        #expect(callers.allSatisfy { $0.text == "first second" && $0.isComplete })
        await scene.close()
    }

    @Test func s04LateFollowerGetsTheBodyFromItsFirstByte() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        let body = try await scene.begin(0)
        await body.feed("first ", scene.world)
        let late = try #require(await scene.crowd(1).first)
        #expect(late.text == "first ")
        #expect(late.info?.source == .collapsed)
        await body.feed("second", scene.world)
        await body.finish(scene.world)
        #expect(late.isComplete && late.text == "first second")
        let after = try #require(await scene.crowd(1).first)
        #expect(after.info?.source == .fresh && after.text == "first second")
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test(arguments: raceSeeds)
    func s04RequestDuringTheEndOfAFlightGetsTheWholeBody(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        _ = await scene.crowd(1)
        let body = try await scene.begin(0)
        await body.feed("whole", scene.world)
        body.finish()
        let racers = await scene.crowd(6)
        #expect(racers.allSatisfy { $0.isComplete && $0.text == "whole" })
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    /// A body too large to store: memory holds only the window, however slow a reader is.
    @Test func s05ASlowFollowerNeitherSlowsTheOthersNorGrowsMemory() async throws {
        let piece = String(repeating: "x", count: 64 * 1_024)
        let scene = try await FlightScene {
            $0.memory = .megabytes(4)
            $0.originLimits.windowSize = .bytes(4 * 64 * 1_024)
        }
        let slow = try #require(await scene.crowd(1, reading: .stepwise).first)
        let quick = await scene.crowd(3)
        let body = try await scene.begin(0)
        for _ in 0..<200 { await body.feed(piece, scene.world) }
        #expect(quick.allSatisfy { $0.bytes.count == 200 * piece.utf8.count })
        #expect(body.unreadCount == 0)
        await body.finish(scene.world)
        #expect(quick.allSatisfy { $0.isComplete })
        for _ in 0..<200 where slow.end == nil {
            slow.readOn()
            await scene.world.settle()
        }
        #expect(slow.errorCode == .readerTooSlow)
        await scene.close()
    }

    @Test func s05FillOfAnUnstoredBodyWaitsForItsOnlyReader() async throws {
        let piece = String(repeating: "x", count: 64 * 1_024)
        let scene = try await FlightScene {
            $0.memory = .megabytes(4)
            $0.originLimits.windowSize = .bytes(4 * 64 * 1_024)
        }
        let reader = try #require(await scene.crowd(1, reading: .stepwise).first)
        let body = try await scene.begin(0)
        for _ in 0..<200 { await body.feed(piece, scene.world) }
        let held = 200 - body.unreadCount
        // The bytes gathered until the body was known to be too large, and the window.
        #expect(held < 100)
        body.finish()
        // A slow reader does not make the origin time out.
        await scene.world.advance(seconds: 200)
        for _ in 0..<300 where reader.end == nil {
            reader.readOn()
            await scene.world.settle()
        }
        #expect(reader.isComplete && reader.bytes.count == 200 * piece.utf8.count)
        await scene.close()
    }

    @Test func s26AHeadIsAnsweredByTheFlightOfAGet() async throws {
        let scene = try await FlightScene()
        let get = try #require(await scene.crowd(1).first)
        let head = try #require(await scene.crowd(1, .page.with { $0.method = .head }).first)
        #expect(scene.origin.count == 1)
        try await scene.answer(0)
        #expect(head.isComplete && head.status == 200 && head.bytes.isEmpty)
        #expect(head.fields["Content-Length"] == "5")
        #expect(get.isComplete && get.text == "hello")
        await scene.close()
    }

    @Test func s26AHeadIsHeldAgainstItsConditionAsByTheStore() async throws {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        func ask(_ tag: String) async throws -> Caller {
            let head = CacheRequest.page.with {
                $0.method = .head
                $0.fields["If-None-Match"] = tag
            }
            return try #require(await scene.crowd(1, head).first)
        }
        let joined = [try await ask("\"1\""), try await ask("\"2\"")]
        try await scene.answer(0, fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""])
        let later = [try await ask("\"1\""), try await ask("\"2\"")]
        #expect(joined.map(\.status) == [304, 200])
        #expect(later.map(\.status) == [304, 200])
        #expect((joined + later).allSatisfy { $0.isComplete && $0.bytes.isEmpty })
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s26AGetIsNeverAnsweredByTheFlightOfAHead() async throws {
        let scene = try await FlightScene()
        let head = try #require(await scene.crowd(1, .page.with { $0.method = .head }).first)
        let get = try #require(await scene.crowd(1).first)
        #expect(scene.origin.exchanges.map(\.request.method) == [.head, .get])
        try await scene.answer(0, fields: ["Content-Length": "5"], body: "")
        #expect(head.isComplete)
        #expect(get.status == nil)
        try await scene.answer(1)
        #expect(get.isComplete && get.text == "hello")
        await scene.close()
    }

    @Test func s26ARangeIsAnsweredAsSoonAsTheGrowingBodyHoldsIt() async throws {
        let scene = try await FlightScene()
        let whole = try #require(await scene.crowd(1).first)
        let part = try #require(
            await scene.crowd(1, .page.with { $0.fields["Range"] = "bytes=2-5" }).first
        )
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Length": "10"]
        let body = try await scene.begin(0, fields: fields)
        await body.feed("0123", scene.world)
        #expect(part.status == 206 && part.text == "23" && part.end == nil)
        await body.feed("456", scene.world)
        #expect(part.isComplete && part.text == "2345")
        #expect(part.fields["Content-Range"] == "bytes 2-5/10")
        #expect(whole.end == nil)
        await body.feed("789", scene.world)
        await body.finish(scene.world)
        #expect(whole.isComplete && whole.text == "0123456789")
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s29EveryAnswerSaysWhatHappened() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(5)
        await scene.world.advance(seconds: 0.5)
        try await scene.answer(0)
        let collapsed = callers.filter { $0.info?.source == .collapsed }
        #expect(collapsed.count == 4)
        for caller in collapsed {
            let status = try #require(caller.fields["Cache-Status"])
            #expect(status.contains("; collapsed"), "\(status)")
            #expect(status.contains("fwd=uri-miss") && status.contains("stored"), "\(status)")
        }
        let statistics = await scene.world.statistics
        #expect(statistics.flights == 1)
        #expect(statistics.waiters == 4)
        #expect(statistics.waitMilliseconds.first { $0.upperBound == 1_000 }?.count == 4)
        #expect(statistics.totalWait == .milliseconds(2_000))
        #expect(statistics.answers[.collapsed] == 4)
        let text = statistics.prometheusText()
        for name in [
            "flights", "waiters", "reelections", "escapes", "hit_for_miss_marks",
            "origin_timeouts", "shared_errors",
        ] { #expect(text.contains("cache_\(name)_total"), "\(name)") }
        #expect(text.contains("cache_wait_milliseconds_bucket{le=\"1000\"} 4"))
        #expect(text.contains("cache_wait_milliseconds_sum 2000\n"))
        await scene.close()
    }

    private static let aged: HeaderFields = [
        "Cache-Control": "max-age=600", "Age": "300", "ETag": "\"1\"",
    ]

    /// RFC 9111 §5.1: the stored lines have no `Age`, so the cache generates one.
    @Test func s29CollapsedResponsesHaveTheirAge() async throws {
        let scene = try await FlightScene()
        let leader = try #require(await scene.crowd(1).first)
        let plain = try #require(await scene.crowd(1).first)
        func ask(_ change: (inout CacheRequest) -> Void) async throws -> Caller {
            try #require(await scene.crowd(1, .page.with(change)).first)
        }
        let head = try await ask { $0.method = .head }
        let part = try await ask { $0.fields["Range"] = "bytes=0-1" }
        let conditional = try await ask { $0.fields["If-None-Match"] = "\"1\"" }
        var fields = Self.aged
        fields["Content-Length"] = "10"
        let body = try await scene.begin(0, fields: fields)
        await scene.world.advance(seconds: 10)
        let late = try #require(await scene.crowd(1).first)
        await body.feed("0123456789", scene.world)
        await body.finish(scene.world)
        #expect(scene.origin.count == 1)
        #expect(leader.fields.values("Age") == ["300"])
        #expect([plain, head, part, conditional].map(\.status) == [200, 200, 206, 304])
        for caller in [plain, head, part, conditional] {
            #expect(caller.info?.source == .collapsed)
            #expect(caller.info?.age == .seconds(300))
            #expect(caller.fields.values("Age") == ["300"], "\(caller.status ?? 0)")
        }
        #expect(late.fields.values("Age") == ["310"])
        #expect(late.info?.remainingLifetime == .seconds(290))
        await scene.close()
    }

    @Test(arguments: [("If-None-Match", "\"1\"", 304), ("Range", "bytes=0-1", 206)])
    func s29OwnResponseMadeFromTheStoredLinesHasItsAge(
        name: String,
        value: String,
        status: Int
    ) async throws {
        let scene = try await FlightScene()
        let caller = try #require(
            await scene.crowd(1, .page.with { $0.fields[name] = value }).first
        )
        // The origin ignores the condition and the range.
        try await scene.answer(0, fields: Self.aged)
        #expect(caller.isComplete && caller.status == status)
        #expect(caller.info?.source == .origin)
        #expect(caller.fields.values("Age") == ["300"])
        await scene.close()
    }

    @Test(arguments: [("If-None-Match", "\"1\"", 304, 2), ("Range", "bytes=0-1", 206, 1)])
    func s29OnlyTheAskerGetsTheFieldsThatAreNotStored(
        name: String,
        value: String,
        status: Int,
        count: Int
    ) async throws {
        let scene = try await FlightScene {
            $0.mode = .shared
            $0.caching.conditionMiss = .whole
        }
        let request = CacheRequest.page.with { $0.fields[name] = value }
        let callers = await scene.crowd(count, request)
        #expect(scene.origin.count == 1)
        // The origin ignores the range, and is not asked about the condition.
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60, private=\"Set-Cookie\"", "ETag": "\"1\"",
            "Set-Cookie": "token=7",
        ]
        try await scene.answer(0, fields: fields)
        let all = callers + (await scene.crowd(1, request))
        #expect(all.allSatisfy { $0.isComplete && $0.status == status })
        #expect(all.filter { $0.info?.source == .origin }.count == 1)
        for caller in all {
            let isAsker = caller.info?.source == .origin
            #expect(caller.fields["Set-Cookie"] == (isAsker ? "token=7" : nil))
        }
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s30RequestCanOptOutOfCollapsing() async throws {
        let scene = try await FlightScene()
        let alone = CacheRequest.page.with { $0.options.collapsing = .alone }
        let callers = await scene.crowd(3, alone)
        #expect(scene.origin.count == 3)
        for index in 0..<3 { try await scene.answer(index, body: "answer \(index)") }
        #expect(Set(callers.map(\.text)) == ["answer 0", "answer 1", "answer 2"])
        #expect(callers.allSatisfy { $0.info?.source == .origin })
        await scene.close()
    }

    @Test func s30ARuleCanSwitchCollapsingOff() async throws {
        let scene = try await FlightScene {
            $0.hooks.collapsing = { $0.url.contains("/page") ? .alone : .shared }
        }
        _ = await scene.crowd(3)
        #expect(scene.origin.count == 3)
        _ = await scene.crowd(3, CacheRequest(url: "http://example.com/other"))
        #expect(scene.origin.count == 4)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        await scene.close()
    }

    /// A request outside the crowd gets neither the crowd's error nor its mark.
    @Test func s30UncollapsedRequestGetsNoSharedErrorOrMark() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        _ = await scene.crowd(2)
        try await scene.fail(0)
        let alone = CacheRequest.page.with { $0.options.collapsing = .alone }
        let caller = try #require(await scene.crowd(1, alone).first)
        try await scene.answer(1)
        #expect(caller.isComplete && caller.info?.source == .origin)
        #expect(caller.fields["Cache-Status"]?.contains("collapsed") == false)
        await scene.close()
    }
}
