import CacheEngine
import CacheEngineRedis
import CacheTestSupport
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

/// The administration's answer to purges in a fleet, and the options of the fleet.
@Suite struct FleetPurgeTests {
    /// A relay that returns one receipt, or fails.
    private final class ReceiptRelay: PurgeRelay {
        private let result: Result<FleetReceipt, CacheError>
        private let reached: FleetReach?
        private let purges = Mutex<[SharedPurge]>([])

        init(_ result: Result<FleetReceipt, CacheError>, _ reached: FleetReach?) {
            self.result = result
            self.reached = reached
        }

        func reach(of receipt: FleetReceipt) async -> FleetReach? { reached }

        var shared: [SharedPurge] { purges.withLock { $0 } }
        func start(_ receiver: any PurgeReceiver) async {}
        func share(_ shared: [SharedPurge], areApplied: Bool) async throws -> FleetReceipt {
            purges.withLock { $0 += shared }
            return try result.get()
        }
        var statistics: FleetStatistics { FleetStatistics() }
        func shutDown() async {}
    }

    private static let url = "http://h.test/1"

    /// The status and the parsed content of the response to a purge.
    private static func purge(
        _ result: Result<FleetReceipt, CacheError>,
        _ fields: [(String, String)] = [],
        reach: FleetReach? = nil
    ) async throws -> (status: Int, content: [String: Any], relay: ReceiptRelay) {
        let relay = ReceiptRelay(result, reach)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Cache-Tag": "a"])
        let cache = try await HTTPCache(origin: origin, fleet: Fleet { relay })
        _ = try await cache.respond(to: CacheRequest(url: url))
        let pool = OriginPool([], name: "me", upstream: origin)
        let desk = AdminDesk(cache: cache, pool: pool, token: "secret-word")
        var request = CacheRequest(method: HTTPMethod("PURGE"), url: url)
        request.fields = HeaderFields([("Authorization", "Bearer secret-word")] + fields)
        let response = try await desk.respond(to: request)
        let text = try await response.body.collect().text
        let content = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
        #expect(try await cache.storedResponse(for: CacheRequest(url: url)) == nil)
        let metrics = await cache.statistics.prometheusText()
        #expect(metrics.contains("\ncache_fleet_linked 0\n"))
        await cache.shutDown()
        return (response.status, content ?? [:], relay)
    }

    @Test(arguments: [(0, 0, 200), (1, 1, 200), (1, 2, 200), (0, 1, 202), (0, 3, 202)])
    func receiptIsShown(_ row: (confirmed: Int, connected: Int, status: Int)) async throws {
        let receipt = FleetReceipt(
            position: 7,
            replicas: row.confirmed,
            connectedReplicas: row.connected
        )
        let (status, content, relay) = try await Self.purge(.success(receipt))
        #expect(status == row.status)
        #expect(content["replicated"] as? Int == row.confirmed)
        #expect(content["removed"] as? Int == 1)
        #expect(relay.shared.count == 1)
    }

    @Test(arguments: [
        (FleetReach(machines: 3, applied: 3), 0, 200),
        (FleetReach(machines: 3, applied: 2), 0, 202),
        (FleetReach(machines: 0, applied: 0), 0, 202), (nil, 0, 202),
        // No replica has confirmed the purge.
        (FleetReach(machines: 3, applied: 3), 1, 202),
    ])
    func reachIsShownIfThePurgeWaits(
        _ row: (reach: FleetReach?, connected: Int, status: Int)
    ) async throws {
        let receipt = FleetReceipt(position: 7, replicas: 0, connectedReplicas: row.connected)
        let fields = [("Purge-Wait", "fleet")]
        let (status, content, _) = try await Self.purge(
            .success(receipt),
            fields,
            reach: row.reach
        )
        #expect(status == row.status)
        #expect(content["machines"] as? Int == row.reach?.machines)
        #expect(content["applied"] as? Int == row.reach?.applied)
        #expect(content.keys.contains("machines") && content["replicated"] as? Int == 0)
        let (_, plain, _) = try await Self.purge(
            .success(receipt),
            [("Purge-Wait", "log")],
            reach: row.reach
        )
        #expect(!plain.keys.contains("machines"))
    }

    @Test func tagsTravelTogether() async throws {
        let receipt = FleetReceipt(position: 7, replicas: 0, connectedReplicas: 0)
        let fields = [("Cache-Tag", "a, b"), ("Surrogate-Key", "c")]
        let (status, content, relay) = try await Self.purge(.success(receipt), fields)
        #expect(status == 200 && content["tags"] as? Int == 3)
        #expect(relay.shared == ["a", "b", "c"].map { SharedPurge(.tag($0), isSoft: false) })
    }

    @Test func purgeOfEverythingReachesTheLog() async throws {
        let receipt = FleetReceipt(position: 7, replicas: 0, connectedReplicas: 0)
        let fields = [("Purge-Everything", "1")]
        let (status, content, relay) = try await Self.purge(.success(receipt), fields)
        #expect(status == 200 && content["everything"] as? Bool == true)
        #expect(relay.shared == [SharedPurge(.everything, isSoft: false)])
    }

    @Test func purgeThatTheLogRefusesIsAnError() async throws {
        let error = CacheError(.fleetFailed, detail: "said \"no\"\\\n")
        let (status, content, _) = try await Self.purge(.failure(error))
        #expect(status == 503)
        #expect(content["removed"] as? Int == 1 && content["replicated"] is NSNull)
        let text = content["error"] as? String ?? ""
        #expect(text.hasPrefix("The purge was applied on this machine"))
        #expect(text.hasSuffix("said \"no\"\\\\u{a}"))
    }

    @Test func optionsAreRead() throws {
        let read = try OptionTests.read([
            "--fleet", "redis://:secret@a:1,b/shop", "--fleet-purge-lag=2.5",
            "--fleet-cut-off", "revalidate",
        ])
        #expect(read.fleet == "redis://:secret@a:1,b/shop")
        #expect(read.fleetLag == .seconds(2.5) && read.fleetCutOff == .revalidate)
        let usual = try OptionTests.read([])
        #expect(usual.fleet == nil && usual.fleetLag == .seconds(10) && usual.fleetCutOff == .serve)
    }

    @Test(arguments: [
        (["--fleet", "http://a"], "--fleet: The Redis URL `http://a` has an unknown scheme"),
        (["--fleet", "redis://:secret@/x"], "--fleet: The Redis URL `redis://…@/x` has no host"),
        (["--fleet", "redis://a/b c"], "--fleet: The Redis URL `redis://a/b c` has an invalid"),
        (["--fleet-purge-lag", "0"], "--fleet-purge-lag: `0` is not a time"),
        (["--fleet-cut-off", "stop"], "--fleet-cut-off: `stop` is not known; give serve or"),
    ])
    func invalidOptionIsOneLine(_ options: [String], _ text: String) throws {
        let error = try #require(
            #expect(throws: ConfigurationError.self) { try OptionTests.read(options) }
        )
        #expect(error.description.hasPrefix(text), "\(error)")
        #expect(!error.description.contains("secret"))
    }

    @Test func fleetNeedsARestart() async throws {
        let service = try await ProxyService(try OptionTests.read(["--listen", "127.0.0.1:0"]))
        let new = try OptionTests.read(["--fleet", "redis://a/b", "--fleet-purge-lag", "3"])
        let left = try service.reload(new)
        #expect(left.contains("fleet") && left.contains("fleet-purge-lag"))
        #expect(!left.contains("fleet-cut-off"))
        await service.shutDown()
    }
}
