import CacheEngine
import CacheTestSupport
import Testing

/// The time for a head that a request has of its own.
@Suite(.eachWay) struct OwnTimeTests {
    private static func page(seconds: Double) -> CacheRequest {
        .page.with { $0.options.timeout = .seconds(seconds) }
    }

    /// The watchdog and the request's own timer notice its end at the same moment; the seeds let each
    /// of them be the first.
    @Test func waiterIsToldOfItsOwnTime() async throws {
        var codes: Set<CacheError.Code> = []
        for seed in 1...6 {
            let scene = try await FlightScene(seed: UInt64(seed), cancellation: .ignored) {
                $0.originLimits.maximumHeadTime = .seconds(10)
                $0.collapsing.maximumWait = .seconds(1_000)
                $0.collapsing.maximumAge = .seconds(1_000)
            }
            _ = await scene.crowd(1, Self.page(seconds: 100))
            let waiter = try #require(await scene.crowd(1, Self.page(seconds: 50)).first)
            await scene.world.advance(seconds: 53)
            let error = try #require(waiter.error as? CacheError)
            codes.insert(error.code)
            if error.code == .originTimedOut {
                #expect(error.detail == "The origin has sent nothing for 50.0 seconds")
            } else {
                #expect(error.code == .deadlineExceeded)
            }
            try await scene.answer(0)
            await scene.close()
        }
        #expect(codes.contains(.originTimedOut))
    }
}
