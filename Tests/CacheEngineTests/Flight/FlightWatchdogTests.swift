import CacheTestSupport
import Testing

@testable import CacheEngine

/// One task watches all flights, and runs only while there are any.
@Suite struct FlightWatchdogTests {
    private static let request = CacheRequest(url: "http://example.com/page")

    private static func other(_ number: Int) -> CacheRequest {
        CacheRequest(url: "http://example.com/\(number)")
    }

    private static func world(_ origin: HeldOrigin) async throws -> SimulatedCache {
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.originLimits.maximumHeadTime = .seconds(4)
        configuration.collapsing.maximumAttempts = 1
        return try await SimulatedCache(configuration: configuration, origin: origin)
    }

    @Test func aThousandFlightsHaveOneTimer() async throws {
        let origin = HeldOrigin()
        let world = try await Self.world(origin)
        let callers = (0..<1_000).map { world.ask(Self.other($0)) }
        await world.settle()
        #expect(world.clock.sleeperCount == 1)
        #expect(await world.work.flights == 1_000)
        for exchange in origin.held { exchange.answer() }
        await world.settle()
        #expect(callers.allSatisfy { $0.isComplete })
        // The timer does not count as work of the cache, and ends by itself.
        #expect(await world.work == WorkUnderWay())
        await world.advance(seconds: 4)
        #expect(world.clock.sleeperCount == 0)
        #expect(await world.shutDown())
    }

    @Test("a flight that begins while another is looked after, or after a rest, is not forgotten")
    func laterFlightIsWatched() async throws {
        let origin = HeldOrigin()
        let world = try await Self.world(origin)
        for restSeconds in [0.5, 100] {
            let quick = await world.answer(Self.other(Int(restSeconds)))
            origin.held.last?.answer(fields: ["Cache-Control": "no-store"])
            await world.advance(seconds: restSeconds)
            #expect(quick.isComplete)
            let hung = await world.answer(Self.request)
            await world.advance(seconds: 3.5)
            #expect(hung.end == nil)
            await world.advance(seconds: 2)
            #expect(hung.errorCode == .originTimedOut)
        }
        #expect(await world.statistics.timeouts == 2)
        #expect(await world.shutDown())
    }

    /// Also while others wait for less time.
    @Test func requestMayWaitLongerThanTheLimit() async throws {
        let origin = HeldOrigin()
        let world = try await Self.world(origin)
        var patient = Self.request
        patient.options.timeout = .seconds(20)
        let caller = await world.answer(patient)
        let other = await world.answer(Self.request)
        for _ in 0..<15 { await world.advance(seconds: 1) }
        #expect(caller.end == nil && other.errorCode == .originTimedOut)
        #expect(origin.count == 1)
        origin.held.last?.answer()
        await world.settle()
        #expect(caller.isComplete)
        var hopeless = Self.other(1)
        hopeless.options.timeout = patient.options.timeout
        let late = await world.answer(hopeless)
        for _ in 0..<25 { await world.advance(seconds: 1) }
        #expect(late.errorCode != nil)
        #expect(await world.shutDown())
    }

    @Test("a leader that was given up, and returns late, does not end what its successor brings")
    func lateLeaderDoesNotEndItsSuccessorsFlight() async throws {
        let origin = HeldOrigin(cancellation: .ignored)
        var configuration = HTTPCache.Configuration(memory: .megabytes(4))
        configuration.originLimits.maximumHeadTime = .seconds(4)
        configuration.originLimits.maximumIdleTime = .seconds(4)
        let world = try await SimulatedCache(configuration: configuration, origin: origin)
        _ = await world.answer(Self.request)
        for _ in 0..<2 { await world.advance(seconds: 1) }
        let successor = await world.answer(Self.request)
        for _ in 0..<3 { await world.advance(seconds: 1) }
        #expect(origin.count == 2)
        // The response needs validation before each use: no request can join, and the body still
        // arrives.
        let body = ManualBody()
        origin.exchanges[1].answer(
            fields: ["Cache-Control": "no-cache", "ETag": "\"1\""],
            body: body
        )
        await world.settle()
        origin.exchanges[0].fail()
        for _ in 0..<8 { await world.advance(seconds: 1) }
        #expect(successor.errorCode == .originTimedOut)
        #expect(await world.work == WorkUnderWay())
        #expect(await world.shutDown())
    }

    @Test func watchdogDoesNotRetainTheCache() async throws {
        weak var left: HTTPCache?
        let clock = TestClock()
        do {
            var configuration = HTTPCache.Configuration(memory: .megabytes(4))
            configuration.clock = clock
            let origin = ScriptedOrigin(fields: ["Cache-Control": "no-store"])
            let cache = try await HTTPCache(configuration: configuration, origin: origin)
            left = cache
            _ = try await cache.respond(to: Self.request).body.collect()
            await cache.waitUntilIdle()
        }
        #expect(await eventually { left == nil })
        clock.advance(seconds: 100)
    }
}
