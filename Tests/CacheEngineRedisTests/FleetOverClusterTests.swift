import CacheEngine
import CacheTestSupport
import Platform
import RedisTestSupport
import Synchronization
import Testing

@testable import CacheEngineRedis

/// The log and the shared store over a real cluster whose slots move and whose masters die.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(2)),
    .serialized
)
struct FleetOverClusterTests {
    /// The requests of a load and their failures.
    private struct Load {
        var requests = 0
        var failures: [String] = []

        /// Each object was asked of both machines.
        var objects: Int { (requests + 1) / 2 }
    }

    /// Asks one machine and then the other for object after object until `body` ends: the first
    /// publishes it, and the second reads it from the store.
    private func load(
        _ machines: [Machine],
        during body: () async throws -> Void
    ) async throws -> Load {
        let isOver = Mutex(false)
        let task = Task {
            var load = Load()
            while !isOver.withLock({ $0 }) {
                let path = "/\(load.requests / 2)"
                do { _ = try await machines[load.requests % 2].version(path) } catch {
                    load.failures.append("\(error)")
                }
                load.requests += 1
                if load.requests.isMultiple(of: 50) { await pause(milliseconds: 1) }
            }
            return load
        }
        defer { isOver.withLock { $0 = true } }
        try await body()
        isOver.withLock { $0 = true }
        return await task.value
    }

    /// R17: slots move under load.
    @Test func movingSlotsFailsNoRequest() async throws {
        let cluster = try await RedisCluster()
        let origin = VersionedOrigin()
        let machines = [
            try await Machine.sharing(cluster.url, origin),
            try await Machine.sharing(cluster.url, origin),
        ]
        let source = try await cluster.master(of: "ce1:test:{log}:s")
        let target = cluster.servers.prefix(3).first { $0.port != source.port } ?? source
        let load = try await load(machines) {
            try await cluster.move(slots: 1_000, from: source, to: target)
        }
        #expect(load.failures.isEmpty, "\(load.failures.first ?? "")")
        #expect(load.requests > 200)
        // Almost each object was one request to the origin, and was read from the store, unless the
        // store was too late for a busy machine.
        let counts = await machines[1].counts
        let failures = await machines[0].counts.sharedFailures + counts.sharedFailures
        print(
            "\(load.objects) objects, \(origin.count) origin requests, \(counts.sharedHits) shared "
                + "hits, \(failures) failures"
        )
        #expect(origin.count <= load.objects + load.objects / 20 + 5 + failures)
        #expect(counts.sharedHits + failures >= load.objects / 10 * 9)
        origin.change("/1")
        try await machines[0].purge(.tag("tag1"))
        #expect(await eventually { (try? await machines[1].version("/1")) == 1 })
        for machine in machines { await machine.cache.shutDown() }
    }

    /// R18: a master dies under load, once one without the log and once the log's.
    @Test(arguments: [false, true])
    func lostMasterFailsNoRequest(isLogs: Bool) async throws {
        let cluster = try await RedisCluster()
        let origin = VersionedOrigin()
        let machines = [
            try await Machine.sharing(cluster.url, origin),
            try await Machine.sharing(cluster.url, origin),
        ]
        let log = try await cluster.master(of: "ce1:test:{log}:s")
        let lost = isLogs ? log : cluster.servers.prefix(3).first { $0.port != log.port } ?? log
        try await machines[0].purge(.tag("before"))
        for machine in machines { #expect(try await machine.version("/1") == 0) }
        let start = monotonicNanoseconds()
        var seconds = 0.0
        let load = try await load(machines) {
            lost.kill()
            origin.change("/1")
            // The purge is taken once a replica has become the master.
            var isTaken = false
            for _ in 0..<200 where !isTaken {
                isTaken = (try? await machines[0].cache.purge(.tag("tag1")).receipt) != nil
                if !isTaken { await pause(milliseconds: 50) }
            }
            #expect(isTaken)
            seconds = Double(monotonicNanoseconds() - start) / 1e9
            // A replica takes over one to two seconds after the loss.
            await pause(milliseconds: 3_000)
        }
        let hits = await machines[1].counts.sharedHits
        print(
            "a purge was taken \(seconds) s after the kill; \(load.requests) requests meanwhile, "
                + "\(origin.count) to the origin, \(hits) shared hits"
        )
        #expect(load.failures.isEmpty, "\(load.failures.first ?? "")")
        #expect(await eventually { (try? await machines[1].version("/1")) == 1 })
        // Every part of the store is used again.
        var number = 1_000_000
        let isUsed = await eventually {
            let paths = (number..<number + 30).map { "/\($0)" }
            number += 30
            guard let later = try? await Machine.sharing(cluster.url, origin) else { return false }
            let published = await machines[0].counts.published
            for path in paths { _ = try? await machines[0].version(path) }
            let arePublished = await eventually(seconds: 1) {
                await machines[0].counts.published == published + 30
            }
            for path in paths { _ = try? await later.version(path) }
            // One of its seeds may be the dead server, which costs its first look-ups.
            let isShared = await later.counts.sharedHits >= 20
            await later.cache.shutDown()
            return arePublished && isShared
        }
        #expect(isUsed)
        for machine in machines { await machine.cache.shutDown() }
    }
}
