import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisClient
import RedisTestSupport
import Synchronization
import Testing

@testable import CacheEngineRedis

/// The log of purges while its servers fail.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(max(5, FleetRounds.minutesMax))),
    .serialized
)
struct PurgeLogFaultTests {
    private let request = CacheRequest(url: Machine.host + "/1")

    /// A master and its replica, linked.
    private func pair() async throws -> (RedisProcess, RedisProcess) {
        let master = try await RedisProcess()
        let replica = try await RedisProcess("--replicaof", "127.0.0.1", "\(master.port)")
        let isUp = await eventually { (try? await replica.info("master_link_status")) == "up" }
        #expect(isUp)
        return (master, replica)
    }

    private func promote(_ replica: RedisProcess) async throws {
        try await replica.command("REPLICAOF", "NO", "ONE")
    }

    /// R14: purges whose receipt names a replica survive the kill of the log's master.
    @Test func replicatedPurgesSurviveTheMaster() async throws {
        let origin = VersionedOrigin()
        for round in 0..<FleetRounds.scaled(3, to: 200) {
            let (master, replica) = try await pair()
            let relay = try Relay(to: master.port)
            let here = try await Machine(relay.url, origin)
            #expect(await here.isLinked())
            var receipts: [FleetReceipt] = []
            for number in 0..<20 {
                let target = PurgeTarget.tag("round\(round)-\(number)")
                receipts.append(try #require(try await here.purge(target)))
            }
            let confirmed = receipts.enumerated().filter { $0.element.replicas >= 1 }
            #expect(!confirmed.isEmpty)
            // No machine that saw the purges lives on to restore them.
            await here.cache.shutDown()
            master.kill()
            try await promote(replica)
            let entries = try await entries(of: replica)
            let ids = Set(entries.map(\.position.rawValue))
            for (_, receipt) in confirmed { #expect(ids.contains(receipt.position)) }
        }
    }

    /// R15: a purge that no replica had is appended again by the machines that saw it.
    @Test func unreplicatedPurgesAreRestoredByTheSurvivors() async throws {
        let master = try await RedisProcess()
        let wire = try Relay(to: master.port)
        let replica = try await RedisProcess("--replicaof", "127.0.0.1", "\(wire.port)")
        let relay = try Relay(to: master.port)
        let origin = VersionedOrigin()
        let here = try await Machine(relay.url, origin)
        let there = try await Machine(relay.url, origin)
        #expect(await here.isLinked())
        #expect(await there.isLinked())
        // A replica is connected before it confirms anything.
        let isReplicated = await eventually {
            (try? await here.purge(.tag("first"))?.replicas) == 1
        }
        #expect(isReplicated)
        wire.cut()
        var lost: [FleetReceipt] = []
        for number in 0..<5 {
            lost.append(try #require(try await here.purge(.tag("lost\(number)"))))
        }
        #expect(lost.allSatisfy { $0.replicas == 0 })
        #expect(await eventually { await isRead(master, by: there) })
        relay.cut()
        master.kill()
        try await promote(replica)
        #expect(try await length(of: replica) > 0)
        #expect(try await tags(in: replica) == [.tag("first")])
        relay.heal(to: replica.port)
        let started = monotonicNanoseconds()
        // The machine that connects first restores them.
        let areRestored = await eventually {
            let counts = (await here.counts, await there.counts)
            return counts.0.restored + counts.1.restored >= 5
        }
        #expect(areRestored)
        let milliseconds = (monotonicNanoseconds() - started) / 1_000_000
        print("lost purges restored \(milliseconds) ms after the connection")
        let last = try #require(try await here.purge(.tag("last")))
        #expect(last.position >> 40 > lost[0].position >> 40)
        let all = try await tags(in: replica)
        for number in 0..<5 { #expect(all.contains(.tag("lost\(number)"))) }
        #expect(await there.counts.allMarkedStale == 0)
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    /// The address of the log leads to the new master, and connections to the old one live on.
    @Test func purgesFollowTheAddressToTheNewMaster() async throws {
        let (master, replica) = try await pair()
        let relay = try Relay(to: master.port)
        let machine = try await Machine(relay.url, VersionedOrigin())
        #expect(await machine.isLinked())
        try await machine.purge(.tag("first"))
        try await promote(replica)
        try await master.command("REPLICAOF", "127.0.0.1", "\(replica.port)")
        relay.heal(to: replica.port)
        let isTaken = await eventually {
            (try? await machine.cache.purge(tag: "second")) != nil
        }
        #expect(isTaken)
        #expect(try await tags(in: replica).contains(.tag("second")))
        await machine.cache.shutDown()
    }

    /// The master is replaced and comes back without a purge in between, perhaps without the log's
    /// end: its run ID is the old one.
    @Test func oldMasterThatComesBackBeginsAnEpoch() async throws {
        let (master, replica) = try await pair()
        let machine = try await Machine(master.url, VersionedOrigin())
        #expect(await machine.isLinked())
        let first = try #require(try await machine.purge(.tag("first")))
        let second = try #require(try await machine.purge(.tag("second")))
        #expect(second.position >> 40 == first.position >> 40)
        try await promote(replica)
        try await master.command("REPLICAOF", "127.0.0.1", "\(replica.port)")
        let isUp = await eventually { (try? await master.info("master_link_status")) == "up" }
        #expect(isUp)
        try await promote(master)
        let third = try #require(try await machine.purge(.tag("third")))
        #expect(third.position >> 40 == first.position >> 40 + 1)
        await machine.cache.shutDown()
    }

    private func entries(of server: RedisProcess) async throws -> [LogEntry] {
        let options = RedisOptions(connectLimit: .seconds(5), readLimit: .seconds(5))
        let client = try RedisClient(RedisURL(server.url), options)
        let range = RESPCommand("XRANGE", key: "ce1:test:{log}:s", "-", "+")
        return try #require(LogEntry.list(try await client.send(range)))
    }

    private func tags(in server: RedisProcess) async throws -> Set<SharedPurge.Scope> {
        Set(try await entries(of: server).compactMap(\.purge).map(\.purge.scope))
    }

    private func length(of server: RedisProcess) async throws -> Int {
        Int(try await server.command("XLEN", "ce1:test:{log}:s").integer ?? 0)
    }

    /// Whether the machine has applied every purge of the log; none is its own.
    private func isRead(_ server: RedisProcess, by machine: Machine) async -> Bool {
        let applied = await machine.counts.applied
        let length = try? await length(of: server)
        return applied > 0 && length == applied
    }

    /// The purges of R19: while the log's server is stopped, hits continue and purges fail clearly.
    @Test func stoppedServerCostsHitsNothing() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let machine = try await Machine(redis.url, origin)
        #expect(await machine.isLinked())
        _ = try await machine.version("/1")
        _ = try await machine.version("/2")
        redis.stop()
        var times: [UInt64] = []
        for _ in 0..<2_000 {
            let start = monotonicNanoseconds()
            #expect(try await machine.version("/1") == 0)
            times.append(monotonicNanoseconds() - start)
        }
        print("slowest of 2,000 hits while Redis is stopped: \((times.max() ?? 0) / 1_000) µs")
        // A few may fall into moments in which the machine stops the thread.
        #expect(times.count { $0 > 100_000_000 } <= 10)
        #expect(origin.count == 2)
        let started = monotonicNanoseconds()
        let error = await #expect(throws: CacheError.self) {
            try await machine.cache.purge(tag: "tag2")
        }
        #expect(error?.code == .purgeNotShared)
        // The limit of the exchange is a second; the rest is for a busy machine.
        #expect(monotonicNanoseconds() - started < 12_000_000_000)
        // The purge was applied here all the same.
        _ = try await machine.version("/2")
        #expect(origin.count == 3)
        #expect(await eventually { await !machine.counts.isLinked })
        #expect(await machine.counts.refused == 1)
        redis.resume()
        let resumed = monotonicNanoseconds()
        #expect(await machine.isLinked())
        #expect(await eventually { (try? await machine.cache.purge(tag: "x")) != nil })
        let milliseconds = (monotonicNanoseconds() - resumed) / 1_000_000
        print("used again \(milliseconds) ms after SIGCONT")
        await machine.cache.shutDown()
    }

    /// The purge part of R23: a full server refuses purges, and keeps those it has.
    @Test func fullServerRefusesPurgesAndKeepsTheLog() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine(redis.url, origin)
        let there = try await Machine(redis.url, origin)
        #expect(await there.isLinked())
        try await here.purge(.tag("t"))
        #expect(await eventually { await isRead(redis, by: there) })
        try await redis.command("CONFIG", "SET", "maxmemory", "1")
        let error = await #expect(throws: CacheError.self) { try await here.cache.remove(request) }
        #expect(error?.code == .purgeNotShared && error?.detail.contains("OOM") == true)
        try await redis.command("CONFIG", "SET", "maxmemory", "0")
        try await here.purge(.tag("t"))
        #expect(await eventually { await isRead(redis, by: there) })
        #expect(await there.counts.allMarkedStale == 0)
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    /// The cache starts without the log, serves, and catches up later.
    @Test func cacheStartsWhileTheServerIsDown() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let folder = TemporaryFolder()
        let here = try await Machine(redis.url, origin)
        let relay = try Relay(to: redis.port)
        let before = try await Machine(relay.url, origin, disk: folder)
        for path in ["/1", "/2"] { _ = try await before.version(path) }
        try await here.purge(.tag("other"))
        #expect(await eventually { await before.counts.applied >= 1 })
        await before.cache.shutDown()
        relay.cut()
        origin.change("/1")
        try await here.purge(.tag("tag1"))
        let started = monotonicNanoseconds()
        let events = Mutex<[String]>([])
        let after = try await Machine(relay.url, origin, disk: folder) { event in
            switch event {
            case .fleetFailed(let error): events.withLock { $0.append("\(error)") }
            case .fleetLinked: events.withLock { $0.append("linked") }
            default: break
            }
        }
        let waited = (monotonicNanoseconds() - started) / 1_000_000
        #expect(waited >= 1_900)
        #expect(try await after.version("/1") == 0)
        #expect(await !after.counts.isLinked)
        relay.heal()
        #expect(await after.isLinked())
        #expect(try await after.version("/1") == 1)
        #expect(try await after.version("/2") == 0)
        #expect(await after.counts.allMarkedStale == 0)
        // The event follows the link.
        #expect(await eventually { events.withLock { $0.last } == "linked" })
        let told = events.withLock { $0 }
        #expect(Set(told).count == told.count && told.count > 1, "\(told)")
        for machine in [here, after] { await machine.cache.shutDown() }
    }

    /// A machine that may not serve while it is cut off lets entries be confirmed.
    @Test func cutMachineRevalidatesIfItIsToldTo() async throws {
        let redis = try await RedisProcess()
        let relay = try Relay(to: redis.port)
        let origin = VersionedOrigin()
        var options = RedisFleetOptions()
        options.maximumLag = .milliseconds(300)
        options.whenCutOff = .revalidate
        let cut = try await Machine(relay.url, origin, options: options)
        #expect(await cut.isLinked())
        _ = try await cut.version("/1")
        relay.cut()
        origin.change("/1")
        #expect(await eventually { await cut.counts.allMarkedStale >= 1 })
        #expect(try await cut.version("/1") == 1)
        #expect(await cut.counts.cutOffs == 1)
        await cut.cache.shutDown()
    }

    /// The purge part of R24: the reason is named, and no secret is shown.
    @Test func wrongPasswordIsAnEventAndServiceGoesOn() async throws {
        let redis = try await RedisProcess("--requirepass", "right-word")
        let (_, texts) = try await failure("redis://:wrong-word@127.0.0.1:\(redis.port)/test")
        #expect(texts.first?.contains("WRONGPASS") == true, "\(texts)")
        #expect(!texts.contains { $0.contains("wrong-word") })
    }

    /// The user of docs/fleet.md may do everything that a fleet needs, and nothing else.
    @Test(arguments: [false, true])
    func userWithFewRightsIsEnough(sharesEntries: Bool) async throws {
        let words = try FleetUser.words(sharesEntries: sharesEntries)
        let redis = try await RedisProcess(["--user"] + words)
        let url = FleetUser.url(redis)
        let origin = VersionedOrigin()
        var options = RedisFleetOptions()
        if sharesEntries { options.shares = .entries }
        let here = try await Machine(url, origin, options: options)
        let there = try await Machine(url, origin, options: options)
        #expect(await here.isLinked())
        #expect(await there.isLinked())
        let receipt = try #require(try await here.purge(.tag("t"), waitingFor: .fleet))
        #expect(FleetPosition(rawValue: receipt.position).epoch == 1)
        #expect(receipt.reach == FleetReach(machines: 2, applied: 2))
        #expect(await eventually { await isRead(redis, by: there) })
        if sharesEntries {
            #expect(try await here.version("/1") == 0)
            #expect(await eventually { await here.counts.published == 1 })
            #expect(try await there.answer("/1").info.tier == .shared)
            var post = CacheRequest(url: Machine.host + "/1")
            post.method = .post
            _ = try await there.cache.respond(to: post)
            #expect(
                await eventually {
                    let keys = try? await redis.command("KEYS", "ce1:test:*:l").elements
                    return keys?.count == 1
                }
            )
        }
        for machine in [here, there] { await machine.cache.shutDown() }
        let client = try RedisClient(
            RedisURL(url),
            RedisOptions(connectLimit: .seconds(5), readLimit: .seconds(5))
        )
        let error = await #expect(throws: RedisError.self) {
            try await client.send(RESPCommand("GET", key: "other"))
        }
        #expect(error?.code == .notPermitted)
    }

    /// The purge part of R24: a user that is removed in the run, and is created again.
    @Test func userThatIsRemovedInTheRunIsAnEventAndServiceGoesOn() async throws {
        let redis = try await RedisProcess(["--user"] + FleetUser.words())
        let events = Mutex<[String]>([])
        let origin = VersionedOrigin()
        let machine = try await Machine(FleetUser.url(redis), origin) { event in
            switch event {
            case .fleetFailed(let error): events.withLock { $0.append("\(error)") }
            case .fleetLinked: events.withLock { $0.append("linked") }
            default: break
            }
        }
        #expect(await machine.isLinked())
        for path in ["/1", "/2"] { #expect(try await machine.version(path) == 0) }
        try await redis.command("ACL", "DELUSER", "fleet")
        #expect(await eventually { await !machine.counts.isLinked })
        let isNamed = await eventually {
            events.withLock { $0.contains { $0.contains("WRONGPASS") } }
        }
        #expect(isNamed, "\(events.withLock { $0 })")
        let error = await #expect(throws: CacheError.self) {
            try await machine.cache.purge(.tag("tag2"), waitingFor: .fleet)
        }
        #expect(error?.code == .purgeNotShared)
        for path in ["/1", "/2"] { #expect(try await machine.version(path) == 0) }
        #expect(origin.count == 3)
        try await redis.command(["ACL", "SETUSER"] + FleetUser.words())
        #expect(await machine.isLinked())
        #expect(await eventually { (try? await machine.cache.purge(tag: "x")) != nil })
        #expect(await machine.counts.allMarkedStale == 0)
        // The event follows the link.
        #expect(await eventually { events.withLock { $0.last } == "linked" })
        let told = events.withLock { $0 }
        #expect(told.first == "linked", "\(told)")
        #expect(!told.contains { $0.contains(FleetUser.password) }, "\(told)")
        #expect(error?.detail.contains(FleetUser.password) == false)
        await machine.cache.shutDown()
    }

    /// An older list of rights lacks the commands of the reports.
    @Test func userWithoutTheRightsOfReportsPurges() async throws {
        let words = try FleetUser.words().filter { !["+hgetall", "+hdel", "+time"].contains($0) }
        let redis = try await RedisProcess(["--user"] + words)
        let machine = try await Machine(FleetUser.url(redis), VersionedOrigin())
        #expect(await machine.isLinked())
        let receipt = try #require(try await machine.purge(.tag("t"), waitingFor: .fleet))
        #expect(receipt.position > 0 && receipt.reach == nil)
        await machine.cache.shutDown()
    }

    /// The purges of the log are read in pages, each of which must come whole before its server counts
    /// as hung.
    @Test func longPurgesAreReadOverASlowLine() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let here = try await Machine(redis.url, origin)
        let filling = String(repeating: "x", count: 1_000)
        for start in stride(from: 0, to: 4_096, by: 256) {
            try await here.purge((start..<start + 256).map { .tag("\($0)\(filling)") })
        }
        let relay = try Relay(to: redis.port)
        // 8 MB in a second.
        relay.slow(Relay.Pace(milliseconds: 8))
        var options = RedisFleetOptions()
        options.shares = .entries
        let there = try await Machine(relay.url, origin, options: options)
        #expect(await there.isLinked())
        // A response is shared once the purges are known.
        var number = 0
        let isBegun = await eventually(seconds: 40) {
            number += 1
            _ = try? await there.version("/\(number)")
            return await there.counts.published > 0
        }
        #expect(isBegun)
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    @Test func serverThatIsNoRedisIsAnEventAndServiceGoesOn() async throws {
        let (listener, port) = try LoopbackSocket.listen()
        PlainThread.start {
            while true {
                let socket = accept(listener, nil, nil)
                guard socket >= 0 else { return }
                let text = "HTTP/1.1 400 Bad Request\r\n\r\n"
                _ = text.withCString { send(socket, $0, text.utf8.count, sendsNoSignal) }
                shutdown(socket, Int32(SHUT_WR))
                close(socket)
            }
        }
        defer {
            shutdown(listener, Int32(SHUT_RDWR))
            close(listener)
        }
        let (error, texts) = try await failure("redis://127.0.0.1:\(port)/test")
        // One clear line each: the server, and what it sent instead of a reply.
        for text in [error.detail] + texts {
            #expect(text.contains("The server 127.0.0.1:\(port) "), "\(text)")
            #expect(text.contains("invalid reply") || text.contains("suspended"), "\(text)")
            #expect(!text.contains("\n"))
        }
        #expect(texts.count == 1, "\(texts)")
    }

    /// Opens a cache whose log cannot be used, and asks for a purge.
    private func failure(_ url: String) async throws -> (CacheError, [String]) {
        let events = Mutex<[String]>([])
        let origin = VersionedOrigin()
        let machine = try await Machine(url, origin) { event in
            if case .fleetFailed(let error) = event { events.withLock { $0.append("\(error)") } }
        }
        #expect(try await machine.version("/1") == 0)
        let error = try #require(
            await #expect(throws: CacheError.self) { try await machine.cache.remove(request) }
        )
        #expect(error.code == .purgeNotShared)
        #expect(try await machine.version("/1") == 0)
        #expect(origin.count == 2)
        await machine.cache.shutDown()
        return (error, events.withLock { $0 })
    }

    @Test(arguments: [
        "http://127.0.0.1", "redis://", "redis://:6379", "redis://h:0/n", "rediss://h/n",
        "redis://h/a b",
    ])
    func invalidURLIsRefusedAtOnce(_ url: String) {
        let error = #expect(throws: CacheError.self) { try Fleet.redis(url) }
        #expect(error?.code == .configurationInvalid)
        #expect(error?.detail.contains("Redis URL") == true)
    }
}
