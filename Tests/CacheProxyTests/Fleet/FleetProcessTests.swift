import CacheTestSupport
import Dispatch
import Foundation
import HTTPCaching
import Platform
import RedisTestSupport
import Synchronization
import Testing

/// A fleet of real processes, one of which is suspended, or has its clock set.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(1)),
    .serialized
)
struct FleetProcessTests {
    /// R7: a machine that is suspended for longer than its lease replaces nothing when it goes on.
    @Test func suspendedLeaderReplacesNothing() async throws {
        let mayAnswer = DispatchSemaphore(value: 0)
        let origin = try WireOrigin { request, socket in
            // The first request is answered late.
            if request.number == 0 { _ = mayAnswer.wait(timeout: .now() + 30) }
            let body = request.number == 0 ? "old" : "new"
            return try socket.answer(200, ["Cache-Control: max-age=600"], body)
        }
        defer { origin.stop() }
        let redis = try await RedisProcess()
        var proxies: [ProxyProcess] = []
        for name in ["a", "b", "c"] {
            let proxy = try await ProxyProcess(
                name,
                origin: origin.port,
                fleet: redis.url,
                revalidates: false
            )
            #expect(await proxy.reaches(1, "cache_fleet_linked"))
            proxies.append(proxy)
        }
        let ports = proxies.map(\.port)
        async let late = FleetLoad.get(1, ports[0])
        #expect(await eventually { origin.count == 1 })
        proxies[0].stop()
        // The lease ends three seconds after its last renewal; who waits gives up after two.
        #expect(try await FleetLoad.get(1, ports[1]) == "new")
        #expect(await proxies[1].reaches(1, "cache_fleet_published_total"))
        let isOver = await eventually {
            (try? await redis.cli("KEYS", "ce1:test:*:l").contains("ce1")) == false
        }
        #expect(isOver)
        mayAnswer.signal()
        proxies[0].resume()
        #expect(try await late == "old")
        #expect(await proxies[0].reaches(1, "cache_fleet_unpublished_total"))
        #expect(try await FleetLoad.get(1, ports[2]) == "new")
        #expect(try await proxies[2].metric("cache_fleet_shared_hits_total") == 1)
        #expect(origin.count == 2)
    }

    /// Machines whose clocks are an hour apart see the same ages.
    @Test(.enabled(if: FakeClock.isInstalled, "libfaketime is missing; run perf/setup tests"))
    func clockOfAMachineChangesNoAge() async throws {
        let pages = VersionedPages()
        let origin = try pages.origin()
        defer { origin.stop() }
        let redis = try await RedisProcess()
        var proxies: [ProxyProcess] = []
        for (name, seconds) in [("early", -3_600), ("late", 3_600)] {
            let proxy = try await ProxyProcess(
                name,
                origin: origin.port,
                fleet: redis.url,
                secondsAhead: seconds
            )
            #expect(await proxy.reaches(1, "cache_fleet_linked"))
            proxies.append(proxy)
        }
        for (page, proxy) in proxies.enumerated() {
            let response = try await WireClient(proxy.port).exchange(FleetLoad.request(page))
            let now = Int64(Date().timeIntervalSince1970)
            let date = HTTPDate.parse(response["Date"] ?? "", nearSeconds: now) ?? 0
            // The process does see its own clock.
            #expect(abs(date - now) > 3_000, "\(response["Date"] ?? "no date")")
            #expect(await proxy.reaches(1, "cache_fleet_published_total"))
        }
        for page in 0...1 {
            for proxy in proxies {
                let response = try await WireClient(proxy.port).exchange(FleetLoad.request(page))
                let age = response["Age"].flatMap { Int($0) } ?? -1
                #expect((0...30).contains(age), "page \(page) has the age \(age)")
            }
        }
        #expect(origin.count == 2)
        for proxy in proxies { #expect(await proxy.reaches(1, "cache_fleet_shared_hits_total")) }
    }
}
