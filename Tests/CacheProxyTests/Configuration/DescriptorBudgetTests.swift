import CurlOrigin
import Testing

@testable import CacheProxy

@Suite struct DescriptorBudgetTests {
    @Test(arguments: [
        // Enough for all.
        (100_000, 20_000, 20_000, 20_000, 20_000),
        // Five eighths and a quarter.
        (1_024, 20_000, 20_000, 640, 256),
        // One side needs less than its part.
        (1_024, 20_000, 10, 886, 10), (1_024, 100, 20_000, 100, 796),
        // Nothing to divide.
        (0, 20_000, 20_000, 5, 2),
    ])
    func clientsLeaveFilesForOrigins(_ row: (Int, Int, Int, Int, Int)) {
        let budget = DescriptorBudget(
            openFilesMax: row.0,
            clientsWanted: row.1,
            originsWanted: row.2
        )
        #expect(budget.clients == row.3 && budget.origins == row.4)
    }

    @Test func boundedConfigurationLimitsBothSidesAndSaysSo() throws {
        let wanted = try OptionTests.read(["--workers", "2"])
        let bounded = wanted.bounded(openFilesMax: 1_024)
        #expect(bounded.connectionsMax == 320)
        let curl = ProxyService.curlConfiguration(bounded)
        #expect(curl.connections.maximumTotal == 256 && curl.connections.maximumPerHost == 256)
        #expect(
            bounded.note(wanted: wanted, openFilesMax: 1_024)
                == "320 connections per worker and 256 to origins, because the process may open "
                + "1024 files; raise the limit with ulimit -n"
        )
        let enough = wanted.bounded(openFilesMax: 1 << 20)
        #expect(enough.connectionsMax == wanted.connectionsMax)
        #expect(enough.note(wanted: wanted, openFilesMax: 1 << 20) == nil)
    }
}
