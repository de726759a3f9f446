import Benchmarks
import Testing

@Suite struct HitRatioTests {
    static let text = """
        trace,percent,policy,request,byte
        web,0.1,LRU,10,20
        web,0.1,GDSF,30,15
        web,1,LRU,40,50
        web,1,GDSF,45,40
        web,1,Belady,90,90
        loop,5,LRU,0,
        """

    @Test func theBestPolicyOfACellDoesNotKnowTheFuture() throws {
        let reference = try HitRatioReference(parsing: Self.text)
        #expect(reference.cells.map(\.trace) == ["web", "web", "loop"])
        #expect(reference.cells.map { $0.best?.policy } == ["GDSF", "GDSF", "LRU"])
        #expect(reference.cells[1].best?.requests == 0.45)
    }

    @Test func scoreCountsPointsOfHitRatio() throws {
        let cells = try HitRatioReference(parsing: Self.text).cells
        let score = HitRatioScore([
            .init(cell: cells[0], requests: 0.20, bytes: 0.25),
            .init(cell: cells[1], requests: 0.43, bytes: 0.48),
        ])
        #expect(abs(score.meanPointsBehindBest - 6) < 1e-9)
        // The cell of a tenth of a percent counts for the mean only.
        #expect(abs(score.worstPointsBehindBest - 2) < 1e-9)
        #expect(abs(score.meanBytePointsOverLRU - 1.5) < 1e-9)
    }

    @Test func replaysTellTheirProgress() throws {
        let scratch = try ScratchDirectory(in: WorkloadPlan.defaultScratchDirectory)
        defer { withExtendedLifetime(scratch) {} }
        let trace = (0..<1_024).map { "\($0),\($0 % 7),100000\n" }.joined()
        for name in ["web", "loop"] { try TextFile.write(trace, to: "\(scratch.path)/\(name).csv") }
        let reference = try HitRatioReference(
            parsing: "web,50,LRU,10,20\nweb,60,LRU,20,30\nloop,70,LRU,0,"
        )
        let replays = HitRatioReplays(directory: scratch.path, reference: reference)
        var steps: [String] = []
        _ = try replays.run(policy: nil) { step, share in
            steps.append("\(step) \((share * 3).rounded())")
        }
        #expect(
            steps == [
                "reading web 0.0", "replaying web 1.0", "replaying web 2.0", "reading loop 2.0",
                "replaying loop 3.0",
            ]
        )
    }

    @Test(arguments: ["", "web,1,LRU,40", "web,x,LRU,1,2", "web,1,LRU,1,y"])
    func invalidTableIsRefused(text: String) {
        #expect(throws: UsageError.self) { try HitRatioReference(parsing: text) }
    }
}
