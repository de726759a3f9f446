import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// S29: the counts of fetches, waiters and failures count each of them once, and nothing else.
@Suite(.eachWay) struct CountingTests {
    /// The failures of the origin that the application was told of.
    private final class Failures: Sendable {
        private let number = Mutex(0)

        var count: Int { number.withLock { $0 } }
        func note(_ event: CacheEvent) {
            if case .originFailed = event { number.withLock { $0 += 1 } }
        }
    }

    /// No other request could have joined these, and none waited for another's fetch.
    @Test func s29RequestsAloneAreNeitherFlightsNorSharedErrors() async throws {
        let failures = Failures()
        let scene = try await FlightScene { $0.hooks.onEvent = failures.note }
        let callers = await scene.crowd(10, .page.with { $0.method = .post })
        for exchange in scene.origin.held {
            exchange.fail(CacheError(.originUnreachable, detail: "refused"))
        }
        await scene.world.settle()
        #expect(callers.allSatisfy { $0.errorCode == .originUnreachable })
        let statistics = await scene.world.statistics
        #expect(statistics.originRequests == 10 && statistics.originFailures == 10)
        #expect(failures.count == 10)
        #expect(statistics.flights == 0 && statistics.sharedErrors == 0)
        #expect(statistics.waiters == 0)
        await scene.close()
    }

    @Test func s29LeadersThatFailOrLeaveAreNoWaiters() async throws {
        let scene = try await FlightScene { $0.collapsing.maximumAttempts = 1 }
        _ = await scene.crowd(1)
        try await scene.fail(0)
        let leaver = try #require(await scene.crowd(1).first)
        leaver.cancel()
        await scene.world.settle()
        #expect(leaver.error is CancellationError)
        let follower = try #require(await scene.crowd(1).first)
        try await scene.answer(1)
        #expect(follower.isComplete && scene.origin.count == 2)
        let statistics = await scene.world.statistics
        #expect(statistics.flights == 2 && statistics.waiters == 1)
        await scene.close()
    }

    /// The watchdog ends the body, and its delivery then finds that it was cancelled.
    @Test(arguments: raceSeeds)
    func s29StalledBodyIsOneFailure(seed: UInt64) async throws {
        let failures = Failures()
        let scene = try await FlightScene(seed: seed) {
            $0.originLimits.maximumIdleTime = .seconds(4)
            $0.hooks.onEvent = failures.note
        }
        let caller = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0)
        await body.feed("half", scene.world)
        await scene.world.advance(seconds: 8)
        #expect(caller.errorCode == .originTimedOut)
        let statistics = await scene.world.statistics
        #expect(statistics.originFailures == 1 && statistics.timeouts == 1)
        #expect(failures.count == 1)
        await scene.close()
    }

    @Test("S29: a body that breaks off is one failure, also one for its own request alone")
    func s29BrokenBodyIsOneFailure() async throws {
        for directive in ["max-age=60", "no-store"] {
            try await Self.breakBody(of: ["Cache-Control": directive])
        }
    }

    private static func breakBody(of fields: HeaderFields) async throws {
        let failures = Failures()
        let scene = try await FlightScene { $0.hooks.onEvent = failures.note }
        let caller = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0, fields: fields)
        body.fail(CacheError(.originFailed, detail: "reset"))
        await scene.world.settle()
        #expect(caller.errorCode == .originFailed)
        #expect(await scene.world.statistics.originFailures == 1)
        #expect(failures.count == 1)
        await scene.close()
    }

    @Test func s29ClientThatLeavesItsOwnBodyIsNoFailure() async throws {
        let scene = try await FlightScene()
        let caller = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0, fields: ["Cache-Control": "no-store"])
        await body.feed("half", scene.world)
        caller.cancel()
        await scene.world.settle()
        #expect(caller.error is CancellationError)
        #expect(await scene.world.statistics.originFailures == 0)
        await scene.close()
    }
}
