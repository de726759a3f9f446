import CacheEngine
import CurlOrigin
import Synchronization
import Testing

@testable import CacheProxy

@Suite struct DescriptorBudgetTests {
    @Test(arguments: [
        // Enough for all.
        (100_000, 20_000, 20_000, 20_000, 20_000, 256),
        // Five eighths and a quarter, an eighth of which is for idle connections of four loops.
        (1_024, 20_000, 20_000, 640, 224, 8),
        // One side needs less than its part.
        (1_024, 20_000, 10, 846, 10, 10), (1_024, 100, 20_000, 100, 700, 24),
        // What requests do not need is for idle connections.
        (1_024, 400, 400, 400, 400, 24),
        // The proxy itself needs more than an eighth.
        (100, 20_000, 20_000, 40, 20, 0), (48, 20_000, 20_000, 5, 3, 0),
    ])
    func clientsLeaveFilesForOrigins(_ row: (Int, Int, Int, Int, Int, Int)) throws {
        let budget = try DescriptorBudget(
            openFilesMax: row.0,
            workers: 2,
            clientsWanted: row.1,
            originsWanted: row.2
        )
        #expect(budget.clients == row.3 && budget.origins == row.4)
        #expect(budget.idleOfLoop == row.5)
    }

    @Test func tooFewFilesAreAnError() {
        for (openFilesMax, workers, segments, needed) in [
            (47, 2, 0, 48), (0, 1, 0, 44), (100, 16, 0, 128), (168, 32, 0, 224),
            (300, 2, 256, 304),
        ] {
            let error = #expect(throws: ConfigurationError.self) {
                try DescriptorBudget(
                    openFilesMax: openFilesMax,
                    workers: workers,
                    segments: segments,
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

    /// Each worker has a client, and all connections need no more files than there are.
    @Test func fewestFilesAreEnoughForEachWorker() throws {
        for workers in 1...64 {
            let own = 32 + 4 * workers
            let wanted = try OptionTests.read(["--workers", "\(workers)"])
            for connections in max(8, 2 * workers)...(2 * workers + 20) {
                let bounded = try wanted.bounded(openFilesMax: own + connections)
                let origins = try #require(bounded.originConnectionsTotalMax)
                let idle = try #require(bounded.originConnectionsIdleMax)
                #expect(bounded.connectionsMax >= 1 && origins >= 1 && idle >= 0)
                // Beside the workers, two loops keep connections.
                let used = bounded.connectionsMax * workers + origins + idle * (workers + 2)
                #expect(used <= connections, "\(workers) workers, \(connections) files")
            }
        }
    }

    /// Each segment keeps a file open for its life.
    @Test func segmentsOnDiskLeaveFewerFilesForConnections() throws {
        var wanted = try OptionTests.read([])
        wanted.diskSize = .gigabytes(4)
        #expect(try wanted.bounded(openFilesMax: 4_096, processors: 16).connectionsMax == 2_560)
        wanted.diskDirectory = "/unused"
        let bounded = try wanted.bounded(openFilesMax: 4_096, processors: 16)
        // 16 shards of 63 segments, and 36 other files.
        #expect(bounded.connectionsMax == (4_096 - 1_008 - 36) / 7 * 5)
        #expect(bounded.originConnectionsTotalMax == 764 && bounded.originConnectionsIdleMax == 36)
        // 16 shards of 15 larger segments.
        let fewer = try wanted.bounded(openFilesMax: 1_024, processors: 16)
        #expect(fewer.connectionsMax == (1_024 - 240 - 36) / 7 * 5)
        // One shard of 15 segments of the largest size.
        let error = #expect(throws: ConfigurationError.self) {
            try wanted.bounded(openFilesMax: 58, processors: 16)
        }
        #expect(error?.description.contains("needs 59;") == true)
    }

    /// A running process keeps its workers and its disk, whatever the new configuration says.
    @Test func newConfigurationIsBoundedForTheWorkersThatRun() throws {
        var running = try OptionTests.read(["--workers", "4"])
        let new = try OptionTests.read(["--workers", "1"])
        var bounded = try new.bounded(openFilesMax: 1_024, running: running)
        #expect(bounded.connectionsMax == 160 && bounded.workers == 1)
        running.diskDirectory = "/unused"
        running.diskSize = .gigabytes(1)
        bounded = try new.bounded(openFilesMax: 1_024, running: running, processors: 8)
        // 8 shards of 31 segments, and 48 other files.
        #expect(bounded.connectionsMax == (1_024 - 248 - 48) / 7 * 5 / 4)
    }

    @Test func reloadCountsTheWorkersThatRun() async throws {
        let options = ["--listen", "127.0.0.1:0", "--connections", "100", "--workers"]
        let service = try await ProxyService(try OptionTests.read(options + ["4"]))
        let arguments = ["--origin", "http://unused"] + options + ["1"]
        ProxyProgram.reload(service, arguments, openFilesMax: 1_024)
        let connections = service.current.withLock {
            ProxyService.curlConfiguration($0).connections
        }
        #expect(connections.maximumTotal == 400 && connections.maximumPerHost == 400)
        let new = try OptionTests.read(options + ["1"])
        #expect(try service.reload(new).contains("workers"))
        await service.shutDown()
    }

    @Test func boundedConfigurationLimitsBothSidesAndSaysSo() throws {
        let wanted = try OptionTests.read(["--workers", "2"])
        let bounded = try wanted.bounded(openFilesMax: 1_024)
        #expect(bounded.connectionsMax == 320)
        let curl = ProxyService.curlConfiguration(bounded)
        #expect(curl.connections.maximumTotal == 224 && curl.connections.maximumPerHost == 224)
        #expect(curl.connections.maximumIdle == 8)
        #expect(
            bounded.note(wanted: wanted, openFilesMax: 1_024)
                == "320 connections per worker and 224 to origins, because the process may open "
                + "1024 files; raise the limit with ulimit -n"
        )
        var mixed = bounded
        mixed.origins = ["http://a", "https://b"].compactMap { OriginAddress($0) }
        let each = ProxyService.curlConfiguration(mixed).connections
        #expect(each.maximumTotal == 112, "each of the two clients counts its own")
        let enough = try wanted.bounded(openFilesMax: 1 << 20)
        #expect(enough.connectionsMax == wanted.connectionsMax)
        #expect(enough.note(wanted: wanted, openFilesMax: 1 << 20) == nil)
    }
}
