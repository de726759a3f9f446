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
        // The proxy itself needs more than an eighth.
        (100, 20_000, 20_000, 40, 20), (48, 20_000, 20_000, 5, 3),
    ])
    func clientsLeaveFilesForOrigins(_ row: (Int, Int, Int, Int, Int)) throws {
        let budget = try DescriptorBudget(
            openFilesMax: row.0,
            workers: 2,
            clientsWanted: row.1,
            originsWanted: row.2
        )
        #expect(budget.clients == row.3 && budget.origins == row.4)
    }

    @Test func tooFewFilesAreAnError() {
        for (openFilesMax, workers, needed) in [(47, 2, 48), (0, 1, 44), (100, 16, 104)] {
            let error = #expect(throws: ConfigurationError.self) {
                try DescriptorBudget(
                    openFilesMax: openFilesMax,
                    workers: workers,
                    clientsWanted: 10,
                    originsWanted: 10
                )
            }
            #expect(error?.code == .filesTooFew)
            #expect(
                error?.description == "The process may open \(openFilesMax) files, and needs "
                    + "\(needed); raise the limit with ulimit -n"
            )
        }
    }

    @Test func boundedConfigurationLimitsBothSidesAndSaysSo() throws {
        let wanted = try OptionTests.read(["--workers", "2"])
        let bounded = try wanted.bounded(openFilesMax: 1_024)
        #expect(bounded.connectionsMax == 320)
        let curl = ProxyService.curlConfiguration(bounded)
        #expect(curl.connections.maximumTotal == 256 && curl.connections.maximumPerHost == 256)
        #expect(
            bounded.note(wanted: wanted, openFilesMax: 1_024)
                == "320 connections per worker and 256 to origins, because the process may open "
                + "1024 files; raise the limit with ulimit -n"
        )
        let enough = try wanted.bounded(openFilesMax: 1 << 20)
        #expect(enough.connectionsMax == wanted.connectionsMax)
        #expect(enough.note(wanted: wanted, openFilesMax: 1 << 20) == nil)
    }
}
