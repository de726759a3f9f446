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

    @Test func emptyStatisticsHaveOneLine() {
        #expect("\(HTTPCache.Statistics())" == "hit ratio  0.0 %")
    }
}
