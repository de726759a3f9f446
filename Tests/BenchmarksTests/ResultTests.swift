import Benchmarks
import Testing

@Suite struct ResultTests {
    static let sample = Measurement(
        workload: "memory-hit",
        quantity: "time_per_hit",
        parameters: [.init("keys", 1024), .init("threads", 2)],
        unit: .nanoseconds,
        better: .lower,
        rounds: Rounds([52, 48, 50]),
        percentiles: Percentiles(p50: 40, p90: 60, p99: 90, p999: 200, max: 5_000),
        ratio: .init(to: "caffeine", 0.8),
        probeNanoseconds: 1_000
    )

    @Test func resultIsReadBackFromItsJSON() throws {
        let result = RunResult(measurements: [Self.sample])
        #expect(try JSONText.decode(from: try JSONText.encode(result)) == result)
    }

    @Test(arguments: [
        #""workload" : "memory-hit""#, #""metric" : "time_per_hit""#, #""keys" : "1024""#,
        #""threads" : "2""#, #""unit" : "ns""#, #""value" : 50"#, #""better" : "lower""#,
        #""ratio_to" : "caffeine""#, #""ratio" : 0.8"#, #""p99.9" : 200"#,
    ])
    func theJSONNamesWhatOthersReadByName(member: String) throws {
        #expect(try JSONText.encode(Self.sample).contains(member))
    }

    @Test func rowsOfAnotherToolNeedOnlyTheFixedMembers() throws {
        let text = """
            {"machine": {}, "build": {}, "results": [
            {"workload": "proxy", "metric": "hot", "unit": "op/s", "value": 9, "better": "higher"}]}
            """
        let result: RunResult = try JSONText.decode(from: text)
        #expect(result.measurements[0].value == 9)
        #expect(result.measurements[0].better == .higher)
    }

    @Test(arguments: [
        (Unit.nanoseconds, 13.0, "13 ns"), (.nanoseconds, 1_234, "1.23 us"),
        (.nanoseconds, 999.7, "1.00 us"), (.nanoseconds, 71_400_000, "71.4 ms"),
        (.operationsPerSecond, 1_500_000, "1.50 M/s"), (.bytes, 64, "64 B"),
        (.bytes, 1_610_612_736, "1.50 GiB"), (.share, 1.12, "1.12"), (.allocations, 0, "0"),
        (.count, 1, "1"), (.share, 0.0012, "0.0012"),
    ])
    func valuesAreReadable(unit: Unit, value: Double, text: String) {
        #expect(unit.readable(value) == text)
    }

    @Test(arguments: [
        (1.005, 1, "1.0"), (-0.04, 1, "0.0"), (-2.55, 1, "-2.6"), (99.999, 2, "100.00"),
        (0, 0, "0"), (1234.5, 0, "1235"), (0.07, 3, "0.070"),
    ])
    func decimalsAreRounded(value: Double, digits: Int, text: String) {
        #expect(value.fixed(digits) == text)
    }

    @Test func columnsAreAligned() {
        var table = TextTable([("name", .left), ("value", .right)])
        table.append(["a", "1"])
        table.append(["long name", "1000"])
        #expect(
            table.text == """
                name       value
                ─────────  ─────
                a              1
                long name   1000

                """
        )
    }

    @Test(arguments: [
        ([3.0, 1, 2], 2.0, 1.0), ([1, 2, 3, 4], 2.5, 1.2), ([7], 7, 0), ([], 0, 0),
    ])
    func roundsHaveAMedianAndASpread(values: [Double], median: Double, spread: Double) {
        #expect(Rounds(values).median == median)
        #expect(abs(Rounds(values).spread - spread) < 1e-12)
    }
}
