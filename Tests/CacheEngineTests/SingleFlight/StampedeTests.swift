import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// A counter that many tasks increment.
private final class Tally: Sendable {
    private let number = Atomic(0)
    var count: Int { number.load(ordering: .relaxed) }
    func add() { number.add(1, ordering: .relaxed) }
}

/// Ten thousand waiters resumed at once, on the process's own threads.
@Suite struct StampedeTests {
    /// The p99 of hits on other keys while ten thousand waiters are resumed.
    ///
    /// No lock is held while they are resumed; a hit takes the lock of its own shard for
    /// nanoseconds. The bound is wide, for a busy machine in a debug build; the benchmark measures
    /// the latency.
    @Test func s23WakingTenThousandLeavesOtherKeysAlone() async throws {
        let origin = HeldOrigin()
        var configuration = HTTPCache.Configuration(memory: .megabytes(32))
        // On a busy machine too, no waiter must time out and send its own request.
        configuration.collapsing.maximumWait = .seconds(3_600)
        let cache = try await HTTPCache(configuration: configuration, origin: origin)
        let other = CacheRequest(url: "http://example.com/other")
        async let filling = cache.respond(to: other)
        while origin.held.isEmpty { await Task.yield() }
        origin.held.first?.answer(fields: ["Cache-Control": "max-age=86400"])
        _ = try await filling.body.collect()
        await cache.waitUntilIdle()

        let answered = Tally()
        let latencies = await withTaskGroup(of: Void.self) { group in
            for _ in 0..<10_000 {
                group.addTask {
                    let text = try? await cache.respond(to: .page).body.collect().text
                    if text == "hello" { answered.add() }
                }
            }
            while await cache.workUnderWay.flights == 0 || origin.held.isEmpty {
                await Task.yield()
            }
            let begun = Tally()
            async let measured = PlainThread.run {
                Self.hits(on: cache, other, from: begun, until: answered)
            }
            // A busy machine may start the thread late.
            while begun.count == 0 { await Task.yield() }
            origin.held.first?.answer()
            await group.waitForAll()
            return await measured
        }
        #expect(answered.count == 10_000)
        #expect(origin.count == 2)
        let sorted = latencies.sorted()
        let p99 = try #require(sorted.dropFirst(sorted.count * 99 / 100).first)
        #expect(p99 < 5_000_000, "nanoseconds")
        #expect(cache.immediateResponse(to: other) != nil)
        await cache.shutDown()
    }

    /// The durations of hits until the last waiter is answered; the first one is told to `begun`.
    private static func hits(
        on cache: HTTPCache,
        _ request: CacheRequest,
        from begun: Tally,
        until answered: Tally
    ) -> [UInt64] {
        let clock = SystemClock()
        var latencies: [UInt64] = []
        while answered.count < 10_000, latencies.count < 500_000 {
            let start = clock.monotonicNanoseconds
            let response = cache.immediateResponse(to: request)
            latencies.append(response == nil ? .max : clock.monotonicNanoseconds - start)
            if latencies.count == 1 { begun.add() }
        }
        return latencies
    }
}
