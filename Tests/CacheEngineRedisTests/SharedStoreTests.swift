import CacheEngine
import CacheTestSupport
import Platform
import RESP
import RedisClient
import RedisTestSupport
import Testing

@testable import CacheEngineRedis

/// The shared store over a real redis-server: whole caches with real connections.
@Suite(
    .enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"),
    .timeLimit(.minutes(10)),
    .serialized
)
struct SharedStoreTests {
    static func end(_ machines: Machine...) async {
        for machine in machines { await machine.cache.shutDown() }
    }

    static func published(_ machine: Machine, _ count: Int) async -> Bool {
        await eventually { await machine.counts.published >= count }
    }

    /// A server, and two machines that share their entries through it.
    static func twoMachines(
        _ origin: any Origin
    ) async throws -> (RedisProcess, Machine, Machine) {
        let redis = try await RedisProcess()
        let here = try await Machine.sharing(redis.url, origin)
        return (redis, here, try await Machine.sharing(redis.url, origin))
    }

    /// Random numbers that are the same for each request of a URL.
    static func random(for request: OriginRequest) -> SeededRandom {
        SeededRandom(seed: UInt64(request.url.utf8.reduce(0) { $0 &+ Int($1) }))
    }

    static func response(fields: HeaderFields, body: [UInt8]) -> OriginResponse {
        var fields = fields
        fields["Content-Length"] = "\(body.count)"
        return OriginResponse(status: 200, fields: fields, body: BodyStream(ByteChunk(body)))
    }

    @Test func digestsAreThoseOfTheScripts() async throws {
        let redis = try await RedisProcess()
        let client = try RedisClient(RedisURL(redis.url), RedisOptions(readLimit: .seconds(5)))
        for script in [FleetScript.publish, .forget, .lease] {
            var load = RESPCommand("SCRIPT")
            load.add("LOAD")
            load.add(script.text)
            #expect(try await client.send(load).text == "\(script.digest)")
        }
    }

    /// R2: what one machine has stored, another reads byte by byte, without the origin.
    @Test func entryOfOneMachineIsEqualOnAnother() async throws {
        let redis = try await RedisProcess()
        let origin = ScriptedOrigin { request, _ in
            var random = Self.random(for: request)
            let bits = Int.random(in: 0...19, using: &random)
            let count = Int.random(in: 0...(1 << bits), using: &random)
            let letters = (0..<count).map { _ in UInt8.random(in: 97...122, using: &random) }
            return Self.response(
                fields: [
                    "Cache-Control": "max-age=3600", "Cache-Tag": "a, b", "ETag": "\"\(count)\"",
                    "Vary": count.isMultiple(of: 2) ? "Accept-Language" : "", "Age": "17",
                ],
                body: letters
            )
        }
        let here = try await Machine.sharing(redis.url, origin)
        let there = try await Machine.sharing(redis.url, origin)
        let count = FleetRounds.scaled(60, to: 1_000)
        for number in 0..<count {
            let fields: HeaderFields = ["Accept-Language": "l\(number % 3)"]
            let first = try await here.answer("/\(number)", fields)
            let body = try await first.body.collect(upTo: .megabytes(2))
            #expect(await Self.published(here, number + 1))
            let second = try await there.answer("/\(number)", fields)
            #expect(try await second.body.collect(upTo: .megabytes(2)) == body)
            #expect(second.info.tier == .shared && second.info.source == .fresh)
            #expect(second.fields["ETag"] == first.fields["ETag"])
            let age = try #require(second.info.ageSeconds)
            #expect((17...60).contains(age))
        }
        #expect(origin.count == count)
        // A response that varies takes two look-ups: its index, and the variant.
        #expect(await there.counts.sharedHits >= count)
        await Self.end(here, there)
    }

    /// R3: a shared hit is one command, a local hit none.
    @Test func sharedHitIsOneCommand() async throws {
        let origin = VersionedOrigin()
        let (redis, here, there) = try await Self.twoMachines(origin)
        _ = try await here.version("/1")
        #expect(await Self.published(here, 1))
        try await redis.command("CONFIG", "RESETSTAT")
        let storeCommands = ["get", "set", "evalsha", "eval"]
        func calls() async throws -> [Int] {
            var calls: [Int] = []
            for name in storeCommands {
                let line = try await redis.info("cmdstat_\(name)", in: "commandstats")
                let count = line?.split(separator: ",").first?.dropFirst("calls=".count)
                calls.append(count.flatMap { Int($0) } ?? 0)
            }
            return calls
        }
        let before = try await calls()
        _ = try await there.version("/1")
        let shared = try await calls()
        #expect(shared[0] == before[0] + 1 && shared[1...] == before[1...], "\(before) \(shared)")
        for _ in 0..<100 { _ = try await there.version("/1") }
        #expect(try await calls() == shared)
        await Self.end(here, there)
    }

    /// R4: a response that the whole fleet misses is one request to the origin.
    @Test(arguments: [false, true])
    func missOfTheFleetIsOneRequest(varies: Bool) async throws {
        let redis = try await RedisProcess()
        let origin = HeldOrigin()
        var machines: [Machine] = []
        for _ in 0..<3 { machines.append(try await Machine.sharing(redis.url, origin)) }
        let fleet = machines
        let texts = try await withThrowingTaskGroup(of: String.self) { group in
            for machine in fleet {
                group.addTask {
                    try await machine.answer("/1", ["Accept": "a"]).body.collectText()
                }
            }
            #expect(await eventually { origin.count == 1 })
            let areWaiting = await eventually {
                var count = 0
                for machine in fleet { count += await machine.counts.sharedWaits }
                return count == 2
            }
            #expect(areWaiting)
            for number in 3..<3_000 {
                group.addTask {
                    let response = try await fleet[number % 3].answer("/1", ["Accept": "a"])
                    return try await response.body.collectText()
                }
            }
            var fields: HeaderFields = ["Cache-Control": "max-age=60"]
            if varies { fields["Vary"] = "Accept" }
            let start = monotonicNanoseconds()
            origin.exchanges[0].answer(fields: fields, body: "one")
            var texts: [String] = []
            for try await text in group { texts.append(text) }
            let last = monotonicNanoseconds() - start
            print("the last of 3,000 had its answer \(last / 1_000_000) ms after the origin's")
            // They look again all the time; otherwise they would wait for a minute.
            #expect(last < 20_000_000_000)
            return texts
        }
        #expect(texts == [String](repeating: "one", count: 3_000))
        #expect(origin.count == 1)
        for machine in machines { await machine.cache.shutDown() }
    }

    /// Three machines under one Zipf-like load, cold: the requests to the origin, and the time of a
    /// shared hit.
    @Test func threeMachinesFetchEachObjectOnce() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        var machines: [Machine] = []
        for _ in 0..<3 { machines.append(try await Machine.sharing(redis.url, origin)) }
        let fleet = machines
        let objects = FleetRounds.scaled(1_250, to: 5_000)
        let requests = objects * 12 / 5
        let distinct = try await withThrowingTaskGroup(of: (Set<Int>, [UInt64]).self) { group in
            for worker in 0..<12 {
                group.addTask {
                    var random = SeededRandom(seed: UInt64(worker))
                    var (seen, times): (Set<Int>, [UInt64]) = ([], [])
                    for _ in 0..<(requests / 12) {
                        let share = Double.random(in: 0..<1, using: &random)
                        let number = Int(Double(objects) * share * share * share)
                        seen.insert(number)
                        let start = monotonicNanoseconds()
                        let response = try await fleet[worker % 3].answer("/\(number)")
                        if response.info.tier == .shared {
                            times.append(monotonicNanoseconds() - start)
                        }
                    }
                    return (seen, times)
                }
            }
            var (seen, times): (Set<Int>, [UInt64]) = ([], [])
            for try await (some, more) in group {
                seen.formUnion(some)
                times += more
            }
            times.sort()
            let (p50, p99) = (times[times.count / 2] / 1_000, times[times.count * 99 / 100] / 1_000)
            print("\(times.count) shared hits under load: p50 \(p50), p99 \(p99) us")
            return seen.count
        }
        let count = origin.count
        print("\(distinct) objects on three machines: \(count) requests to the origin")
        #expect(count >= distinct && Double(count) <= 1.02 * Double(distinct))
        let later = try await Machine.sharing(redis.url, origin)
        var times: [UInt64] = []
        for number in 0..<objects / 10 {
            let start = monotonicNanoseconds()
            let response = try await later.answer("/\(number)")
            if response.info.tier == .shared { times.append(monotonicNanoseconds() - start) }
        }
        times.sort()
        #expect(times.count > objects * 8 / 100)
        print("a shared hit alone: p50 \(times[times.count / 2] / 1_000) us")
        for machine in machines + [later] { await machine.cache.shutDown() }
    }

    /// R8: nobody waits for a response that is for one client, neither those that wait meanwhile nor
    /// later ones.
    @Test func unshareableResponseDelaysNobody() async throws {
        let origin = HeldOrigin()
        let (redis, here, there) = try await Self.twoMachines(origin)
        let answering = Task {
            while !Task.isCancelled {
                for exchange in origin.held where exchange !== origin.exchanges[0] {
                    exchange.answer(fields: ["Cache-Control": "private"], body: "b")
                }
                await pause(milliseconds: 1)
            }
        }
        async let first = here.answer("/1").body.collectText()
        #expect(await eventually { origin.count == 1 })
        let waiting = (0..<300).map { _ in
            Task {
                let text = try await there.answer("/1").body.collectText()
                #expect(text == "b")
                return monotonicNanoseconds()
            }
        }
        #expect(await eventually { await there.counts.sharedWaits == 1 })
        await pause(milliseconds: 50)
        let start = monotonicNanoseconds()
        origin.exchanges[0].answer(fields: ["Cache-Control": "private"], body: "a")
        #expect(try await first == "a")
        var end = start
        for task in waiting { end = max(end, try await task.value) }
        let last = end - start
        print("300 that waited for a private response went on within \(last / 1_000_000) ms")
        // Without the mark they would wait for a minute.
        #expect(last < 20_000_000_000)
        let keys = try await redis.command("KEYS", "ce1:test:*:l").elements ?? []
        let left = try await redis.command("PTTL", try #require(keys.first?.text)).integer
        #expect((1...5_000).contains(left ?? 0))
        #expect(await there.counts.sharedHits == 0)
        #expect(await here.counts.published == 0)
        answering.cancel()
        await Self.end(here, there)
    }

    /// A record that is no longer fresh is confirmed by the origin, and published anew.
    @Test func staleRecordIsConfirmedNotFetched() async throws {
        let redis = try await RedisProcess()
        let origin = ScriptedOrigin { request, _ in
            let fields: HeaderFields = [
                "Cache-Control": "max-age=1, stale-if-error=600", "ETag": "\"a\"",
            ]
            return request.fields["If-None-Match"] == "\"a\""
                ? OriginResponse(status: 304, fields: fields)
                : .whole(fields: fields, body: "a")
        }
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.answer("/1")
        #expect(await Self.published(here, 1))
        let there = try await Machine.sharing(redis.url, origin)
        await pause(milliseconds: 2_100)
        let response = try await there.answer("/1")
        #expect(try await response.body.collectText() == "a")
        #expect(origin.requests.last?.fields["If-None-Match"] == "\"a\"")
        #expect(await Self.published(there, 1))
        await Self.end(here, there)
    }

    /// Requests for two variants wait for one flight, and the stale record of one is in Redis.
    @Test func staleVariantIsNotGivenToAnother() async throws {
        let redis = try await RedisProcess()
        let fields: HeaderFields = [
            "Cache-Control": "max-age=1, stale-if-error=600", "Vary": "Accept", "ETag": "\"e\"",
        ]
        let first = ScriptedOrigin { request, _ in
            .whole(fields: fields, body: request.fields["Accept"] ?? "")
        }
        let here = try await Machine.sharing(redis.url, first)
        _ = try await here.answer("/1", ["Accept": "en"])
        #expect(await Self.published(here, 1))
        await pause(milliseconds: 2_100)
        let origin = HeldOrigin()
        let there = try await Machine.sharing(redis.url, origin)
        async let english = there.answer("/1", ["Accept": "en"]).body.collectText()
        #expect(await eventually { origin.count == 1 })
        async let german = there.answer("/1", ["Accept": "de"]).body.collectText()
        #expect(
            await eventually { await there.cache.statistics.waiters == 2 || origin.count == 2 }
        )
        var answered = 0
        let answering = Task {
            while !Task.isCancelled {
                for exchange in origin.held {
                    let accept = exchange.request.fields["Accept"] ?? ""
                    if exchange.request.fields["If-None-Match"] == nil {
                        exchange.answer(fields: fields, body: accept)
                    } else {
                        exchange.answer(status: 304, fields: fields, body: "")
                    }
                }
                await pause(milliseconds: 2)
            }
        }
        #expect(try await english == "en")
        #expect(try await german == "de")
        answered = origin.count
        answering.cancel()
        #expect(answered >= 1)
        await Self.end(here, there)
    }

    /// A machine that starts again at the end of the log publishes with its position.
    @Test func restartedMachinePublishesWhatOthersUse() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let folder = TemporaryFolder()
        let before = try await Machine.sharing(redis.url, origin, disk: folder)
        try await before.purge(.everything)
        #expect(
            await eventually {
                let last = try? await redis.command("HGET", "ce1:test:{log}:meta", "last").text
                return last != "0-0"
            }
        )
        await before.cache.shutDown()
        let again = try await Machine.sharing(redis.url, origin, disk: folder)
        _ = try await again.version("/1")
        #expect(await Self.published(again, 1))
        let there = try await Machine.sharing(redis.url, origin)
        #expect(try await there.answer("/1").info.tier == .shared)
        await Self.end(again, there)
    }

    @Test func privateAndSessionEntriesNeverLeaveTheMachine() async throws {
        let redis = try await RedisProcess()
        let origin = ScriptedOrigin { request, _ in
            let rule = request.url.hasSuffix("private") ? "private, max-age=60" : "max-age=60"
            return .whole(fields: ["Cache-Control": rule], body: "x")
        }
        let here = try await Machine.sharing(redis.url, origin)
        _ = try await here.answer("/private")
        var options = HTTPCache.ManualStoreOptions()
        options.storageClass = .session
        let response = try await here.answer("/plain")
        _ = try await here.cache.store(
            response,
            for: CacheRequest(url: Machine.host + "/session"),
            options: options
        )
        options.storageClass = .permanent
        options.place = .memoryOnly
        _ = try await here.cache.store(
            response,
            for: CacheRequest(url: Machine.host + "/memory"),
            options: options
        )
        #expect(await Self.published(here, 1))
        let there = try await Machine.sharing(redis.url, origin)
        for path in ["/private", "/session", "/memory"] { _ = try await there.answer(path) }
        #expect(await there.counts.sharedHits == 0)
        let error = await #expect(throws: CacheError.self) {
            var options = RedisFleetOptions()
            options.shares = .entries
            _ = try await HTTPCache(
                configuration: HTTPCache.Configuration(mode: .private),
                origin: origin,
                fleet: .redis(redis.url, options: options)
            )
        }
        #expect(error?.code == .configurationInvalid)
        await Self.end(here, there)
    }
}
