import Testing

@testable import CacheEngine

@Suite struct StatisticsTableTests {
    @Test func countsThatAreNotZeroHaveALine() {
        var statistics = HTTPCache.Statistics()
        statistics.answers = [.fresh: 3, .origin: 1, .stale: 0]
        statistics.originRequests = 1
        statistics.escapes = ["private": 2]
        statistics.memory = StoreUsage(entries: 2, bytes: 700, capacityBytes: 1_024)
        let table = """
            hit ratio                     75.0 %
            answers, fresh                3
            answers, origin               1
            origin requests               1
            left a shared fetch, private  2
            memory                        2 entries, 700 of 1024 bytes
            """
        #expect("\(statistics)" == table)
    }

    /// A field without a row would be in no metric and in no description.
    @Test func everyCountHasARowOfItsOwn() {
        let fields = Mirror(reflecting: HTTPCache.Statistics()).children
        let counts = fields.count { $0.value is Int }
        let rows = HTTPCache.Statistics.table
        let paths = rows.compactMap { row -> AnyKeyPath? in
            if case .field(let path, _) = row.source { path } else { nil }
        }
        #expect(paths.count == counts && Set(paths).count == counts)
        var statistics = HTTPCache.Statistics()
        statistics.fleet = FleetStatistics()
        let names = statistics.metrics.map(\.name)
        #expect(Set(names).count == names.count)
        let fleetFields = Mirror(reflecting: FleetStatistics()).children.count
        #expect(names.count { $0.hasPrefix("fleet_") } == fleetFields)
        #expect(rows.allSatisfy { ($0.kind == .counter) == $0.name.hasSuffix("_total") })
        #expect(statistics.metrics.allSatisfy { $0.help.hasSuffix(".") })
    }

    @Test func emptyStatisticsHaveOneLine() {
        #expect("\(HTTPCache.Statistics())" == "hit ratio  0.0 %")
    }
}
