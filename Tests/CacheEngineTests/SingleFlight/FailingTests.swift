import CacheEngine
import CacheTestSupport
import Testing

/// Results of a crowd when its fetch, or one of its requests, fails.
@Suite(.eachWay) struct FailingTests {
    @Test func s06AttemptsAreBoundedForAnyNumberOfWaiters() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 3 }
        let callers = await scene.crowd(100)
        for attempt in 0..<3 {
            #expect(scene.origin.count == attempt + 1)
            #expect(scene.origin.held.count == 1)
            try await scene.fail(attempt, "attempt \(attempt)")
        }
        #expect(scene.origin.count == 3)
        let errors = callers.compactMap { $0.error as? CacheError }
        #expect(errors.count == 100)
        #expect(errors.filter(\.isShared).count == 97)
        #expect(errors.filter(\.isShared).allSatisfy { $0.detail == "attempt 2" })
        let statistics = await scene.world.statistics
        #expect(statistics.reElections == 2 && statistics.sharedErrors == 1)
        await scene.close()
    }

    /// A request cannot cause this error, so a client cannot use it to deny responses to others.
    @Test func s06TheErrorOfAnUnreachableOriginAnswersForASecond() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        _ = await scene.crowd(2)
        scene.origin.exchanges[0].fail(CacheError(.originUnreachable, detail: "down"))
        await scene.world.settle()
        await scene.world.advance(seconds: 0.9)
        let early = try #require(await scene.crowd(1).first)
        #expect((early.error as? CacheError)?.isShared == true)
        #expect((early.error as? CacheError)?.detail == "down")
        #expect(scene.origin.count == 1)
        await scene.world.advance(seconds: 0.2)
        let later = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2)
        try await scene.answer(1)
        #expect(later.isComplete)
        await scene.close()
    }

    @Test func s06OneFollowerTakesOverAndAnswersTheRest() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(20)
        try await scene.fail(0)
        #expect(callers.filter { $0.errorCode == .originFailed }.count == 1)
        try await scene.answer(1)
        #expect(callers.filter { $0.isComplete && $0.text == "hello" }.count == 19)
        #expect(scene.origin.count == 2)
        await scene.close()
    }

    @Test func s07FollowersOfABrokenBodyNeverSeeACleanEnd() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(10)
        let body = try await scene.begin(0)
        await body.feed("half", scene.world)
        body.fail(CacheError(.originFailed, detail: "reset"))
        await scene.world.settle()
        #expect(callers.allSatisfy { $0.text == "half" && $0.errorCode == .originFailed })
        let next = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 2)
        try await scene.answer(1, body: "whole")
        #expect(next.isComplete && next.text == "whole")
        await scene.close()
    }

    /// The origin fails just behind its head, before those that waited have run.
    @Test(arguments: raceSeeds)
    func s07BodyThatBreaksWithItsHeadCostsOneFetch(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        let callers = await scene.crowd(50)
        let body = ManualBody()
        if seed.isMultiple(of: 2) { body.feed("half") }
        body.fail(CacheError(.originFailed, detail: "reset"))
        let exchange = try #require(scene.origin.exchanges.first)
        exchange.answer(fields: ["Cache-Control": "max-age=60"], body: body)
        await scene.world.settle()
        #expect(scene.origin.count == 1)
        #expect(callers.allSatisfy { $0.errorCode == .originFailed })
        await scene.close()
    }

    @Test func s07ABodyShorterThanAnnouncedIsBroken() async throws {
        let scene = try await FlightScene()
        let callers = await scene.crowd(3)
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Length": "10"]
        let body = try await scene.begin(0, fields: fields)
        await body.feed("half", scene.world)
        await body.finish(scene.world)
        #expect(callers.allSatisfy { $0.text == "half" && $0.errorCode == .bodyTruncated })
        _ = await scene.crowd(1)
        #expect(scene.origin.count == 2)
        try await scene.answer(1)
        await scene.close()
    }

    @Test(arguments: raceSeeds)
    func s07RequestDuringABrokenBodyGetsAWholeBodyOrAnError(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed)
        var callers = await scene.crowd(2)
        let body = try await scene.begin(0)
        await body.feed("half", scene.world)
        body.fail(CacheError(.originFailed, detail: "reset"))
        callers += await scene.crowd(4)
        for exchange in scene.origin.held { exchange.answer(body: "half and half") }
        await scene.world.settle()
        for caller in callers {
            #expect(caller.end != nil)
            if caller.isComplete { #expect(caller.text == "half and half") }
            #expect(!(caller.error is CancellationError))
        }
        await scene.close()
    }

    @Test func s08TheFlightGoesOnWithoutItsLeader() async throws {
        let scene = try await FlightScene { $0.collapsing.abandoned = .cancel }
        let leader = try #require(await scene.crowd(1).first)
        let followers = await scene.crowd(5)
        leader.cancel()
        await scene.world.settle()
        #expect(leader.error is CancellationError)
        try await scene.answer(0)
        #expect(followers.allSatisfy { $0.isComplete && $0.text == "hello" })
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    @Test func s08WantedResponseIsStoredWithoutWaiters() async throws {
        let scene = try await FlightScene { $0.collapsing.abandoned = .finish }
        let leader = try #require(await scene.crowd(1).first)
        leader.cancel()
        await scene.world.settle()
        #expect(scene.origin.held.count == 1)
        try await scene.answer(0)
        let next = try #require(await scene.crowd(1).first)
        #expect(next.info?.source == .fresh)
        await scene.close()
    }

    @Test(arguments: raceSeeds)
    func s08CancellationReachesOnlyItsOwnRequest(seed: UInt64) async throws {
        let scene = try await FlightScene(seed: seed) {
            $0.collapsing.abandoned = .cancel
            $0.collapsing.maximumAttempts = 2
        }
        let leavers = await scene.crowd(2)
        for leaver in leavers { leaver.cancel() }
        let stayers = await scene.crowd(4)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(leavers.allSatisfy { $0.error is CancellationError })
        #expect(stayers.allSatisfy { $0.isComplete && $0.text == "hello" })
        await scene.close()
    }

    /// An origin that throws `CancellationError` has failed; no request was cancelled.
    @Test func s08CancellationThrownByTheOriginIsAFailure() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        let callers = await scene.crowd(3)
        scene.origin.held.first?.fail(CancellationError())
        await scene.world.settle()
        #expect(callers.allSatisfy { $0.errorCode == .originFailed })
        await scene.close()
    }

    @Test func s09AWaiterThatLeavesFreesItsPlaceAtOnce() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumWaiters = 2 }
        let pair = await scene.crowd(2)
        #expect(scene.origin.count == 1)
        _ = await scene.crowd(1)
        #expect(scene.origin.count == 2)
        pair[1].cancel()
        await scene.world.settle()
        #expect(pair[1].error is CancellationError || pair[0].error is CancellationError)
        let next = await scene.crowd(1)
        #expect(scene.origin.count == 2)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(next[0].isComplete)
        #expect(await scene.world.statistics.escapes["crowded"] == 1)
        await scene.close()
    }

    /// The reader of an unstored body leaves: the writer does not wait for it.
    @Test func s09LeavingReaderDoesNotBlockTheWriter() async throws {
        let piece = String(repeating: "x", count: 64 * 1_024)
        let scene = try await FlightScene {
            $0.memory = .megabytes(4)
            $0.originLimits.windowSize = .bytes(64 * 1_024)
        }
        let readers = await scene.crowd(2)
        let body = try await scene.begin(0)
        for _ in 0..<80 { await body.feed(piece, scene.world) }
        readers[0].cancel()
        for _ in 0..<80 { await body.feed(piece, scene.world) }
        await body.finish(scene.world)
        #expect(readers[1].isComplete && readers[1].bytes.count == 160 * piece.utf8.count)
        await scene.close()
    }

    @Test func s10AHungLeaderIsReplacedAndItsLateAnswerOverwritesNothing() async throws {
        let scene = try await FlightScene(cancellation: .ignored) {
            $0.originLimits.maximumHeadTime = .seconds(4)
        }
        let first = try #require(await scene.crowd(1).first)
        await scene.world.advance(seconds: 2)
        let callers = await scene.crowd(2)
        await scene.world.advance(seconds: 3)
        #expect(first.errorCode == .originTimedOut)
        #expect(scene.origin.count == 2)
        try await scene.answer(1, body: "new")
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "new" })
        try await scene.answer(0, body: "old")
        let next = try #require(await scene.crowd(1).first)
        #expect(next.info?.source == .fresh && next.text == "new")
        await scene.close()
    }

    /// Its head is the later one, but its attempt was given up.
    @Test("a late refusal neither ends what its successor has stored, nor marks the key")
    func s10LateRefusalEndsNothing() async throws {
        for status in [200, 304] {
            let scene = try await FlightScene(cancellation: .ignored) {
                $0.originLimits.maximumHeadTime = .seconds(4)
            }
            let fields: HeaderFields = ["Cache-Control": "max-age=10", "ETag": "\"1\""]
            _ = await scene.crowd(1)
            try await scene.answer(0, fields: fields, body: "old")
            await scene.world.advance(seconds: 11)
            _ = await scene.crowd(1)
            await scene.world.advance(seconds: 2)
            let callers = await scene.crowd(2)
            await scene.world.advance(seconds: 3)
            try #require(scene.origin.count == 3)
            try await scene.answer(2, body: "new")
            #expect(callers.allSatisfy { $0.isComplete && $0.text == "new" })
            let late: HeaderFields = ["Cache-Control": "no-store", "ETag": "\"1\""]
            try await scene.answer(1, status: status, fields: late, body: "")
            let next = try #require(await scene.crowd(1).first)
            #expect(next.info?.source == .fresh && next.text == "new", "\(status)")
            #expect(await scene.world.statistics.hitForMissMarks == 0, "\(status)")
            await scene.close()
        }
    }

    @Test func s10ABodyThatStandsStillFreesItsKey() async throws {
        let scene = try await FlightScene { $0.originLimits.maximumIdleTime = .seconds(4) }
        let first = try #require(await scene.crowd(1).first)
        let stuck = try await scene.begin(0)
        await stuck.feed("old ", scene.world)
        await scene.world.advance(seconds: 8)
        #expect(first.errorCode == .originTimedOut)
        let second = try #require(await scene.crowd(1).first)
        try await scene.answer(1, body: "new")
        #expect(second.text == "new")
        await stuck.feed("end", scene.world)
        await stuck.finish(scene.world)
        let third = try #require(await scene.crowd(1).first)
        #expect(third.info?.source == .fresh && third.text == "new")
        await scene.close()
    }

    @Test func s10AFlightPastItsAgeGivesItsKeyToOneNewLeader() async throws {
        let scene = try await FlightScene(cancellation: .ignored) {
            $0.collapsing.maximumAge = .seconds(3)
            $0.collapsing.maximumWait = .seconds(1_000)
            $0.originLimits.maximumHeadTime = .seconds(1_000)
        }
        let old = await scene.crowd(3)
        await scene.world.advance(seconds: 4)
        let new = await scene.crowd(3)
        #expect(scene.origin.count == 2)
        try await scene.answer(1, body: "new")
        #expect((old + new).allSatisfy { $0.isComplete && $0.text == "new" })
        try await scene.answer(0, body: "old")
        #expect(await scene.crowd(1).first?.text == "new")
        await scene.close()
    }

    /// The head is in time, however many requests come meanwhile.
    @Test func s10SlowHeadEndsNoFlight() async throws {
        let scene = try await FlightScene { $0.originLimits.maximumHeadTime = .seconds(120) }
        let first = try #require(await scene.crowd(1).first)
        await scene.world.advance(seconds: 85)
        let second = try #require(await scene.crowd(1).first)
        #expect(scene.origin.count == 1)
        await scene.world.advance(seconds: 5)
        #expect(first.end == nil && second.end == nil)
        // The time until the head counts as age (RFC 9111 §4.2.3).
        let fields: HeaderFields = ["Cache-Control": "max-age=600"]
        try await scene.answer(0, fields: fields, body: "slow")
        #expect(first.isComplete && first.text == "slow" && first.info?.source == .origin)
        #expect(second.isComplete && second.text == "slow" && second.info?.source == .collapsed)
        await scene.world.advance(seconds: 40)
        let third = try #require(await scene.crowd(1).first)
        #expect(third.text == "slow" && third.info?.source == .fresh)
        #expect(scene.origin.count == 1)
        await scene.close()
    }

    /// The request that was sent has its time, though another one asks for itself meanwhile.
    @Test func s10EscapeEndsNoSlowHead() async throws {
        let scene = try await FlightScene { $0.originLimits.maximumHeadTime = .seconds(120) }
        let first = try #require(await scene.crowd(1).first)
        await scene.world.advance(seconds: 65)
        let second = try #require(await scene.crowd(1).first)
        await scene.world.advance(seconds: 25)
        #expect(scene.origin.held.count == 2)
        try await scene.answer(0, fields: ["Cache-Control": "max-age=600"], body: "slow")
        #expect(first.isComplete && first.text == "slow")
        #expect(await scene.crowd(1).first?.info?.source == .fresh)
        try await scene.answer(1, body: "escaped")
        #expect(second.isComplete && second.text == "escaped")
        await scene.close()
    }

    @Test func s11AWaiterPastItsLimitAsksForItselfAndIsNotStored() async throws {
        let scene = try await FlightScene {
            $0.collapsing.maximumWait = .seconds(2)
            $0.collapsing.maximumEscapes = 2
        }
        let callers = await scene.crowd(6)
        await scene.world.advance(seconds: 4)
        #expect(scene.origin.count == 3)
        try await scene.answer(1, body: "escaped")
        #expect(callers.filter { $0.text == "escaped" }.count == 1)
        // The origin answers, so the hanging request is left to its caller and the others start a
        // new flight.
        #expect(scene.origin.count == 4)
        let next = try #require(await scene.crowd(1).first)
        #expect(next.status == nil && scene.origin.count == 4)
        try await scene.answer(0, body: "hung")
        try await scene.answer(2, body: "escaped")
        #expect(next.status == nil)
        try await scene.answer(3, body: "shared")
        #expect(callers.allSatisfy { $0.isComplete } && next.text == "shared")
        #expect(await scene.crowd(1).first?.text == "shared")
        let escapes = await scene.world.statistics.escapes
        #expect(escapes["waitedTooLong", default: 0] >= 2)
        await scene.close()
    }

    @Test func s11EscapesOfOneKeyAreCapped() async throws {
        let scene = try await FlightScene {
            $0.collapsing.maximumWait = .seconds(2)
            $0.collapsing.maximumEscapes = 2
            $0.originLimits.maximumHeadTime = .seconds(1_000)
            $0.collapsing.maximumAge = .seconds(1_000)
        }
        _ = await scene.crowd(20)
        await scene.world.advance(seconds: 50)
        #expect(scene.origin.count == 3)
        // The answer to an escape may be taken first: the others then start a new flight.
        for _ in 0..<2 {
            for exchange in scene.origin.held { exchange.answer() }
            await scene.world.settle()
        }
        await scene.close()
    }

    @Test func s25ARequestsOwnDeadlineBoundsAllItsWaits() async throws {
        let scene = try await FlightScene(cancellation: .ignored) {
            $0.collapsing.maximumAge = .seconds(3)
            $0.originLimits.maximumHeadTime = .seconds(1_000)
        }
        let patient = try #require(await scene.crowd(1).first)
        let hasty = CacheRequest.page.with { $0.options.timeout = .seconds(5) }
        let caller = try #require(await scene.crowd(1, hasty).first)
        // After three seconds a new request takes the key, and both waiters look again.
        await scene.world.advance(seconds: 3.5)
        _ = await scene.crowd(1)
        #expect(scene.origin.count == 2 && caller.end == nil)
        await scene.world.advance(seconds: 1.6)
        #expect(caller.errorCode == .deadlineExceeded)
        try await scene.answer(1)
        #expect(patient.isComplete)
        try await scene.answer(0)
        await scene.close()
    }

    @Test func s25LookingAgainIsCapped() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumLookUps = 1 }
        let german = await scene.crowd(1, .speaking("de"))
        let english = await scene.crowd(1, .speaking("en"))
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
        try await scene.answer(0, fields: fields, body: "de")
        #expect(scene.origin.count == 2)
        try await scene.answer(1, fields: fields, body: "en")
        #expect(german[0].text == "de" && english[0].text == "en")
        #expect(await scene.world.statistics.escapes["lookedTooOften"] == 1)
        await scene.close()
    }

    @Test func s27AFailingStoreIsInvisible() async throws {
        let scene = try await FlightScene {
            $0.memory = .disabled
            $0.backing = .custom(FailingStore())
        }
        for round in 0..<2 {
            let callers = await scene.crowd(3)
            try await scene.answer(round, body: "whole")
            #expect(callers.allSatisfy { $0.isComplete && $0.text == "whole" })
        }
        #expect(scene.origin.count == 2)
        #expect(await scene.world.statistics.storageErrors > 0)
        await scene.close()
    }
}

/// A store that fails every call.
private struct FailingStore: CacheStore {
    private static let gone = CacheError(.storageFailed, detail: "No space left on device")

    func entry(for key: StoreKey) async throws -> StoredEntry? { throw Self.gone }
    func store(_ entry: StoredEntry) async throws -> StoreOutcome { throw Self.gone }
    func remove(_ key: StoreKey) async throws -> Bool { throw Self.gone }
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount { throw Self.gone }
    func usage() async -> StoreUsage { StoreUsage() }
    func flush() async throws { throw Self.gone }
}
