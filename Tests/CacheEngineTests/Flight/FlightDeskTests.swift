import Testing

@testable import CacheEngine

/// The tables of the flights under way, by themselves.
@Suite struct FlightDeskTests {
    private typealias Desk = FlightDesk<Int, Int>

    private static func key(_ identity: UInt64) -> KeyHash {
        KeyHash(placement: 1, identity: identity)
    }

    @Test("a flight whose next attempt finds another variant holds that one's key, and no other")
    func aFlightHoldsOneVariant() async throws {
        let desk = Desk(limits: FlightLimits(), desks: 1)
        var circumstances = Desk.Circumstances()
        circumstances.lead = { _ in Task {} }
        let boarding = await desk.board(Self.key(1), 0, nowNanoseconds: 0, circumstances)
        guard case .aboard(let flight, _) = boarding else {
            Issue.record("Nothing was under way: it leads")
            return
        }
        for identity in [2, 3] as [UInt64] {
            await desk.settleVariant(of: Self.key(1), flight.licence) { ((), Self.key(identity)) }
            #expect(await desk.count == 2)
        }
        await desk.end(flight)
        #expect(await desk.count == 0)
    }
}
