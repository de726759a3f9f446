import Testing

@testable import CacheEngineRedis

@Suite struct FleetPositionTests {
    @Test func textIsTheIDOfAnEntry() throws {
        let position = try #require(FleetPosition("3-70"))
        #expect(position.epoch == 3 && position.number == 70)
        #expect(position.rawValue == 3 << 40 | 70)
        #expect(position.description == "3-70")
        #expect(FleetPosition("0-0") == .zero)
    }

    @Test(arguments: [
        "", "3", "3-", "-3", "3-4-5", "+3-4", "3-4 ", "a-1", "16777216-0", "0-1099511627776",
    ])
    func otherTextIsRefused(_ text: String) { #expect(FleetPosition(text) == nil) }

    @Test func laterEpochIsLaterWhateverItsNumber() throws {
        let texts = ["0-0", "0-9", "1-1", "1-10", "2-1", "10-0", "16777215-1099511627775"]
        let positions = try texts.map { try #require(FleetPosition($0)) }
        #expect(positions == positions.sorted())
        #expect(Set(positions).count == texts.count)
    }
}
