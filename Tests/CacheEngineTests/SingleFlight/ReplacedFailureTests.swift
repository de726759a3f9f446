import CacheEngine
import CacheTestSupport
import Testing

/// Results of a crowd whose one response is an error that a stored response may replace.
@Suite(.eachWay) struct ReplacedFailureTests {
    /// A failure that a stored response may replace.
    struct Replaceable: CustomTestStringConvertible, Sendable {
        let directives: HeaderFields
        let policy: CachePolicy
        let status: Int
        var testDescription: String { "\(status) \(policy.fallback)" }

        static let all: [Replaceable] =
            [500, 502, 503, 504].map {
                Replaceable(
                    directives: ["Cache-Control": "max-age=60, stale-if-error=1000"],
                    policy: .standard,
                    status: $0
                )
            }
            + [402, 404, 500, 503, 505, 599].map {
                Replaceable(
                    directives: ["Cache-Control": "max-age=60"],
                    policy: CachePolicy(fallback: .always(statuses: [$0])),
                    status: $0
                )
            }
    }

    /// A scene whose one entry has become stale.
    private static func staleScene(_ fields: HeaderFields) async throws -> FlightScene {
        let scene = try await FlightScene()
        _ = await scene.crowd(1)
        try await scene.answer(0, fields: fields, body: "stored")
        await scene.world.advance(seconds: 61)
        return scene
    }

    @Test(arguments: Replaceable.all)
    func s21AFailureThatMayBeReplacedIsOneRequest(failure: Replaceable) async throws {
        let scene = try await Self.staleScene(failure.directives)
        let callers = await scene.crowd(100, .page.with { $0.options.policy = failure.policy })
        #expect(scene.origin.count == 2)
        try await scene.answer(1, status: failure.status, fields: [:], body: "busy")
        #expect(scene.origin.count == 2)
        #expect(callers.allSatisfy { $0.isComplete && $0.text == "stored" })
        #expect(callers.allSatisfy { $0.info?.source == .fallback })
        #expect(callers.allSatisfy { $0.info?.originStatus == failure.status })
        #expect(await scene.world.statistics.hitForMissMarks == 0)
        await scene.close()
    }

    /// Each waiter's own policy decides, whether or not that of the request that was sent allows it.
    @Test(arguments: Replaceable.all, [true, false])
    func s21OthersAskThemselvesWhereNothingMayReplaceTheFailure(
        failure: Replaceable,
        isAskerLenient: Bool
    ) async throws {
        let scene = try await Self.staleScene(failure.directives)
        let lenient = CacheRequest.page.with { $0.options.policy = failure.policy }
        let strict = CacheRequest.page.with {
            $0.options.policy = CachePolicy(fallback: .never)
        }
        _ = await scene.crowd(1, isAskerLenient ? lenient : strict)
        let replaced = await scene.crowd(5, lenient)
        let others = await scene.crowd(3, strict)
        #expect(scene.origin.count == 2)
        // A 4xx that the policy of its asker does not replace is no failure of the origin.
        try await scene.answer(
            1,
            status: failure.status,
            fields: ["Cache-Control": "no-store"],
            body: "busy"
        )
        let isFailure = isAskerLenient || failure.status >= 500
        #expect(scene.origin.held.count == (isFailure ? 3 : 8))
        if isFailure { #expect(replaced.allSatisfy { $0.text == "stored" }) }
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(others.allSatisfy { $0.isComplete && $0.text == "hello" })
        await scene.close()
    }

    /// The request that was sent may have provoked the status.
    @Test(arguments: [400, 401, 403, 405, 413, 429, 501])
    func s15ARefusalOfOneRequestIsReplacedForItAlone(status: Int) async throws {
        let scene = try await Self.staleScene(["Cache-Control": "max-age=60"])
        let policy = CachePolicy(fallback: .always(statuses: [status]))
        let callers = await scene.crowd(4, .page.with { $0.options.policy = policy })
        try await scene.answer(1, status: status, fields: [:], body: "yours")
        #expect(callers.filter { $0.text == "stored" }.count == 1)
        #expect(scene.origin.held.count == 3)
        for exchange in scene.origin.held { exchange.answer() }
        await scene.world.settle()
        #expect(callers.filter { $0.text == "hello" }.count == 3)
        await scene.close()
    }
}
