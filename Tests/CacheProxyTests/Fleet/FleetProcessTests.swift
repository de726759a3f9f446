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
        let names = try await redis.cli("KEYS", "ce1:test:{????????????????}:*")
        let name = try #require(names.split(separator: "\n").first)
        let record = try await redis.cli("GET", String(name))
        mayAnswer.signal()
        proxies[0].resume()
        #expect(try await late == "old")
        #expect(await proxies[0].reaches(1, "cache_fleet_unpublished_total"))
        #expect(try await redis.cli("GET", String(name)) == record)
        #expect(origin.count == 2)
        #expect(try await FleetLoad.get(1, ports[2]) == "new")
    }

    /// Machines whose clocks are an hour apart see the same ages.
    @Test(.enabled(if: FakeClock.isPossible, "the library is for Linux"))
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
        for (writer, reader) in [(0, 1), (1, 0)] {
            let pages = (10 * writer)..<(10 * writer + 10)
            let ages = try await Self.ages(pages, of: proxies[writer], at: proxies[reader])
            #expect(ages.allSatisfy { (0...30).contains($0) }, "\(ages)")
        }
    }

    /// The age of a page that `reader` found in the shared store, there and at the machine that
    /// fetched it.
    ///
    /// A look that takes 25 milliseconds ends at the origin; then the next page is asked for.
    private static func ages(
        _ pages: Range<Int>,
        of writer: ProxyProcess,
        at reader: ProxyProcess
    ) async throws -> [Int] {
        for page in pages {
            let first = try await WireClient(writer.port).exchange(FleetLoad.request(page))
            let now = Int64(Date().timeIntervalSince1970)
            let date = HTTPDate.parse(first["Date"] ?? "", nearSeconds: now) ?? 0
            // The process does see its own clock.
            #expect(abs(date - now) > 3_000, "\(first["Date"] ?? "no date")")
            let second = try await WireClient(reader.port).exchange(FleetLoad.request(page))
            guard try await reader.metric("cache_fleet_shared_hits_total") > 0 else { continue }
            let third = try await WireClient(writer.port).exchange(FleetLoad.request(page))
            return [second.age ?? -1, third.age ?? -1]
        }
        throw WireFailure("No page came from the shared store")
    }
}
