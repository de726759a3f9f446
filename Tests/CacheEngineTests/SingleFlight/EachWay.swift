import CacheTestSupport
import Testing

/// Runs each test of a suite once for each way to ask a simulated cache.
struct EachWay: SuiteTrait, TestTrait, TestScoping {
    var isRecursive: Bool { true }

    func scopeProvider(for test: Test, testCase: Test.Case?) -> Self? {
        testCase == nil ? nil : self
    }

    func provideScope(
        for test: Test,
        testCase: Test.Case?,
        performing run: @Sendable () async throws -> Void
    ) async throws {
        for way in SimulatedCache.Way.allCases {
            try await SimulatedCache.$way.withValue(way) { try await run() }
        }
    }
}

extension Trait where Self == EachWay {
    /// Tasks that await their responses, and event loops that are called with them.
    static var eachWay: Self { Self() }
}
