import Platform
import Testing

@testable import CacheProxy

/// Signals that come during a drain.
@Suite struct DrainSignalsTests {
    private static let since: UInt64 = 5_000_000_000

    private static func effect(_ number: Int32, after nanoseconds: UInt64) -> DrainSignals.Effect {
        let signal = ReceivedSignal(number: number, atNanoseconds: since + nanoseconds)
        return DrainSignals(sinceNanoseconds: since).effect(of: signal)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func copyOfTheFirstSignalChangesNothing(number: Int32) {
        let limit = DrainSignals.copyNanoseconds
        #expect(Self.effect(number, after: 0) == .repeats)
        #expect(Self.effect(number, after: limit - 1) == .repeats)
        #expect(Self.effect(number, after: limit) == .endsNow)
        #expect(Self.effect(number, after: 86_400 * limit) == .endsNow)
    }

    @Test(arguments: [UInt64(0), 86_400_000_000_000])
    func otherSignalsEndNothing(nanoseconds: UInt64) {
        #expect(Self.effect(SIGUSR1, after: nanoseconds) == .reopensLog)
        #expect(Self.effect(SIGHUP, after: nanoseconds) == .isIgnored)
    }

    /// The response that is waited for never comes.
    @Test func secondSignalCutsRunningResponses() async throws {
        let script: WireOrigin.Script = { _, socket in
            _ = try socket.readToEnd()
            return .end
        }
        try await withProxy(script) { proxy, origin in
            let client = try proxy.client()
            try await client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(await eventually { origin.count == 1 })
            let (signals, feed) = AsyncStream<ReceivedSignal>.makeStream()
            let second = Self.since + DrainSignals.copyNanoseconds
            for number in [SIGHUP, SIGTERM] {
                feed.yield(ReceivedSignal(number: number, atNanoseconds: second))
            }
            feed.finish()
            let rules = DrainSignals(sinceNanoseconds: Self.since)
            await ProxyProgram.follow(signals, rules, draining: proxy.service)
            #expect(try await client.isClosed())
        }
    }
}
