import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisClient
import RedisTestSupport
import Synchronization
import Testing

@testable import CacheEngineRedis

/// The log of purges over a real redis-server: whole caches with real connections.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(FleetRounds.minutesMax)),
    .serialized
)
struct PurgeLogTests {
    private static func machines(
        _ urls: [String],
        _ origin: any Origin,
        options: RedisFleetOptions = RedisFleetOptions()
    ) async throws -> [Machine] {
        var machines: [Machine] = []
        for url in urls { machines.append(try await Machine(url, origin, options: options)) }
        for machine in machines { #expect(await machine.isLinked()) }
        return machines
    }

    private static func end(_ machines: [Machine]) async {
        for machine in machines { await machine.cache.shutDown() }
    }

    @Test func digestsAreThoseOfTheScripts() async throws {
        let redis = try await RedisProcess()
        let client = try RedisClient(RedisURL(redis.url), RedisOptions(readLimit: .seconds(5)))
        for script in [FleetScript.open, FleetScript.append] {
            var load = RESPCommand("SCRIPT")
            load.add("LOAD")
            load.add(script.text)
            #expect(try await client.send(load).text == "\(script.digest)")
        }
    }

    /// R9: after the receipt and 100 ms no machine serves an old body.
    @Test func purgeReachesEveryMachineWithinATenthOfASecond() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let machines = try await Self.machines([redis.url, redis.url, redis.url], origin)
        let paths = (0..<20).map { "/\($0)" }
        var random = SeededRandom(seed: 9)
        var (old, lateRounds) = (0, 0)
        var positions: [UInt64] = []
        let rounds = FleetRounds.scaled(60, to: 2_000)
        for _ in 0..<rounds {
            for path in paths { for machine in machines { _ = try await machine.version(path) } }
            var purged: Set<String> = []
            for _ in 0..<5 {
                let path = paths[Int.random(in: 0..<paths.count, using: &random)]
                let machine = machines[Int.random(in: 0..<3, using: &random)]
                origin.change(path)
                purged.insert(path)
                let receipt = try await machine.purge(
                    Int.random(in: 0..<3, using: &random) == 0
                        ? .request(CacheRequest(url: Machine.host + path))
                        : .tag("tag\(path.dropFirst())")
                )
                positions.append(try #require(receipt).position)
            }
            await pause(milliseconds: 100)
            guard try await oldBodies(of: purged, machines, origin) > 0 else { continue }
            // A machine that has no processor for a while is late, and must not stay so.
            lateRounds += 1
            await pause(milliseconds: 1_000)
            old += try await oldBodies(of: purged, machines, origin)
        }
        print("rounds with an old body 100 ms after the receipt: \(lateRounds) of \(rounds)")
        #expect(lateRounds <= rounds / 10)
        #expect(old == 0)
        #expect(positions == positions.sorted() && Set(positions).count == 5 * rounds)
        for machine in machines {
            let counts = await machine.counts
            #expect(counts.allMarkedStale == 0)
            // The machine's own purges come back and are not applied twice.
            #expect(counts.applied + counts.appended == 5 * rounds || counts.refused > 0)
        }
        await Self.end(machines)
    }

    private func oldBodies(
        of paths: Set<String>,
        _ machines: [Machine],
        _ origin: VersionedOrigin
    ) async throws -> Int {
        var old = 0
        for path in paths {
            for machine in machines where try await machine.version(path) != origin.version(path) {
                old += 1
            }
        }
        return old
    }

    @Test func everyKindOfPurgeReachesTheOtherMachine() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let machines = try await Self.machines([redis.url, redis.url], origin)
        let (here, there) = (machines[0].cache, machines[1])
        let request = CacheRequest(url: Machine.host + "/1")
        let purges: [(name: String, purge: @Sendable () async throws -> Void)] = [
            ("remove", { _ = try await here.remove(request) }),
            ("removeVariant", { _ = try await here.removeVariant(request) }),
            ("tag", { _ = try await here.purge(tag: "tag1") }),
            ("all", { _ = try await here.removeAll() }),
            ("markStale", { _ = try await here.markStale(request) }),
            ("markVariantStale", { _ = try await here.markVariantStale(request) }),
            ("markStale tag", { try await here.markStale(tagged: "all") }),
            ("soft all", { _ = try await here.purge(.everything, isSoft: true) }),
        ]
        for (name, purge) in purges {
            _ = try await machines[0].version("/1")
            // A soft purge would let a stale response be served once.
            let before = try await there.version("/1")
            #expect(before == origin.version("/1"))
            origin.change("/1")
            let applied = await there.counts.applied
            try await purge()
            #expect(await eventually { await there.counts.applied == applied + 1 }, "\(name)")
            #expect(
                await eventually { (try? await there.version("/1")) == origin.version("/1") },
                "\(name)"
            )
        }
        await Self.end(machines)
    }

    /// R10: a fetch that was under way elsewhere stores nothing.
    @Test func purgeForbidsFetchesUnderWayOnOtherMachines() async throws {
        let redis = try await RedisProcess()
        let held = HeldOrigin()
        let folder = TemporaryFolder()
        let here = try await Machine(redis.url, held)
        let there = try await Machine(redis.url, held, disk: folder)
        #expect(await here.isLinked())
        #expect(await there.isLinked())
        let request = CacheRequest(url: Machine.host + "/1")
        async let answer = there.version("/1")
        #expect(await eventually { held.count == 1 })
        _ = try await here.cache.remove(request)
        #expect(await eventually { await there.counts.applied == 1 })
        held.exchanges[0].answer(body: "7")
        #expect(try await answer == 7)
        #expect(try await there.cache.storedResponse(for: request) == nil)
        let statistics = await there.cache.statistics
        #expect(statistics.memory.entries == 0 && statistics.disk.entries == 0)
        await Self.end([here, there])
    }

    /// R11: a machine that was cut off applies what it missed, and keeps everything else.
    @Test func cutMachineAppliesWhatItMissed() async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = VersionedOrigin()
        let machines = try await Self.machines([redis.url, relay.url], origin)
        let cut = machines[1]
        let paths = (0..<200).map { "/\($0)" }
        for path in paths { _ = try await cut.version(path) }
        relay.cut()
        #expect(await eventually { await !cut.counts.isLinked })
        for path in paths.prefix(100) {
            origin.change(path)
            try await machines[0].purge(.tag("tag\(path.dropFirst())"))
        }
        let count = origin.count
        for path in paths { #expect(try await cut.version(path) == 0) }
        #expect(origin.count == count)
        relay.heal()
        #expect(await cut.isLinked())
        var old = 0
        for path in paths.prefix(100) where try await cut.version(path) != 1 { old += 1 }
        #expect(old == 0)
        #expect(origin.count == count + 100)
        for path in paths.dropFirst(100) { #expect(try await cut.version(path) == 0) }
        #expect(origin.count == count + 100)
        let counts = await cut.counts
        #expect(counts.applied >= 100 && counts.replays >= 1 && counts.allMarkedStale == 0)
        await Self.end(machines)
    }

    /// R12: a machine that was off applies what it missed before its first answer.
    @Test func restartOnDiskAppliesWhatItMissedBeforeTheFirstAnswer() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let folder = TemporaryFolder()
        let here = try await Machine(redis.url, origin)
        let before = try await Machine(redis.url, origin, disk: folder)
        let paths = (0..<100).map { "/\($0)" }
        for path in paths { _ = try await before.version(path) }
        // A purge that it applies itself, so that it keeps a position.
        try await here.purge(.tag("other"))
        #expect(await eventually { await before.counts.applied >= 1 })
        await before.cache.shutDown()
        for path in paths.prefix(50) {
            origin.change(path)
            try await here.purge(.tag("tag\(path.dropFirst())"))
        }
        let (count, started) = (origin.count, monotonicNanoseconds())
        let after = try await Machine(redis.url, origin, disk: folder)
        // A machine without a processor for two seconds confirms the other entries, too.
        let isLate = monotonicNanoseconds() - started >= 1_900_000_000
        var old = 0
        for path in paths.prefix(50) where try await after.version(path) != 1 { old += 1 }
        #expect(old == 0)
        for path in paths.dropFirst(50) { #expect(try await after.version(path) == 0) }
        #expect(origin.count == count + 50 || isLate)
        #expect(await after.counts.allMarkedStale == 0 || isLate)
        await Self.end([here, after])
    }

    /// R13: a log that was trimmed past the machine's position costs one request for each entry.
    @Test(arguments: [false, true])
    func trimmedLogLetsEveryEntryBeConfirmed(isRestarted: Bool) async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = VersionedOrigin()
        let folder = TemporaryFolder()
        let here = try await Machine(redis.url, origin)
        var there = try await Machine(relay.url, origin, disk: folder)
        let paths = (0..<40).map { "/\($0)" }
        for path in paths { _ = try await there.version(path) }
        try await here.purge(.tag("other"))
        #expect(await eventually { await there.counts.applied >= 1 })
        relay.cut()
        if isRestarted { await there.cache.shutDown() }
        for path in paths.prefix(20) {
            origin.change(path)
            try await here.purge(.tag("tag\(path.dropFirst())"))
        }
        try await redis.command("XTRIM", "ce1:test:{log}:s", "MAXLEN", "3")
        relay.heal()
        if isRestarted { there = try await Machine(relay.url, origin, disk: folder) }
        #expect(await eventually { await there.counts.allMarkedStale == 1 })
        #expect(await there.isLinked())
        let (count, confirmed) = (origin.count, origin.confirmed)
        var old = 0
        for _ in 0..<2 {
            for path in paths where try await there.version(path) != origin.version(path) {
                old += 1
            }
        }
        #expect(old == 0)
        #expect(origin.count == count + 40 && origin.confirmed == confirmed + 20)
        await Self.end([here, there])
    }

    /// R16: a log that was deleted and begun anew is another log.
    @Test(arguments: ["FLUSHALL", "DEL"])
    func deletedLogLetsEveryEntryBeConfirmed(_ word: String) async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let machines = try await Self.machines([redis.url, redis.url], origin)
        for machine in machines { _ = try await machine.version("/1") }
        try await machines[0].purge(.tag("other"))
        if word == "DEL" {
            try await redis.command("DEL", "ce1:test:{log}:s", "ce1:test:{log}:meta")
        } else {
            try await redis.command(word)
        }
        #expect(
            await eventually {
                var isDone = true
                for machine in machines {
                    isDone = await machine.counts.allMarkedStale > 0 && isDone
                }
                return isDone
            }
        )
        let (count, confirmed) = (origin.count, origin.confirmed)
        for machine in machines { _ = try await machine.version("/1") }
        #expect(origin.count == count + 2 && origin.confirmed == confirmed + 2)
        origin.change("/1")
        try await machines[0].purge(.tag("tag1"))
        #expect(
            await eventually { (try? await machines[1].version("/1")) == 1 },
            "the new log works as the old one did"
        )
        await Self.end(machines)
    }
}
