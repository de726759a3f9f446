import Testing

@testable import Benchmarks

@Suite struct LookUpsTests {
    private static func lookUps(_ count: Int, lost: Int) -> LookUps {
        var found = LookUps()
        for number in 0..<count { found.add(isHit: number >= lost) }
        return found
    }

    @Test(arguments: [(50, 0), (50, 5), (1_000, 100), (1, 0)])
    func fewLossesAreReported(count: Int, lost: Int) throws {
        let found = Self.lookUps(count, lost: lost)
        try found.requireFewLost()
        #expect(found.lostShare == Double(lost) / Double(count))
    }

    @Test(arguments: [(50, 6), (50, 50), (1, 1), (0, 0)])
    func manyLossesGiveNoFigure(count: Int, lost: Int) {
        #expect(throws: WorkloadFailure.self) {
            try Self.lookUps(count, lost: lost).requireFewLost()
        }
    }
}
