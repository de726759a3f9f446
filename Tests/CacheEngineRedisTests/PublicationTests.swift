import CacheTestSupport
import RESP
import RedisClient
import RedisTestSupport
import Synchronization
import Testing

@testable import CacheEngine
@testable import CacheEngineRedis

/// The order in which the records of one machine reach Redis.
@Suite struct PublicationTests {
    private static func publication(
        _ key: String,
        of resource: String = "r",
        at moment: Int64,
        mayReplace: Bool = false
    ) -> Publication {
        let copy = SharedCopy(
            key: SharedKey(bytes: Array(key.utf8), resource: Array(resource.utf8)),
            entry: Samples.entry(tags: []),
            position: 0,
            nowSeconds: 0,
            lifetimeSeconds: 60,
            mayReplace: mayReplace
        )
        var horizon = PurgeHorizon()
        let log = [UInt8](repeating: 1, count: SharedRecord.logBytes)
        return Publication(
            copies: [copy],
            tokens: [[]],
            mayReplace: mayReplace,
            mark: horizon.mark(copy.key.bytes, until: 0),
            log: log,
            keys: StoreKeys(namespace: "test", log: log),
            milliseconds: moment
        )
    }

    @Test func oneOfAResourceIsSentAtATime() {
        var queue = PublicationQueue()
        let first = Self.publication("a", at: 1)
        #expect(queue.add(first).isNext)
        #expect(!queue.add(Self.publication("b", at: 2)).isNext)
        #expect(!queue.add(Self.publication("c", at: 3)).isNext)
        #expect(queue.add(Self.publication("d", of: "another", at: 4)).isNext)
        #expect(queue.next(behind: first)?.milliseconds == 2)
        #expect(!queue.add(Self.publication("a", at: 5)).isNext)
        #expect(queue.next(behind: first)?.milliseconds == 3)
        #expect(queue.next(behind: first)?.milliseconds == 5)
        #expect(queue.next(behind: first) == nil)
        #expect(queue.add(first).isNext)
    }

    @Test func newestOfAnEntryTakesThePlaceOfAnOlderOne() {
        var queue = PublicationQueue()
        let first = Self.publication("a", at: 1)
        #expect(queue.add(first).replaced == nil)
        #expect(queue.add(Self.publication("a", at: 2, mayReplace: true)).replaced == nil)
        #expect(queue.add(Self.publication("b", at: 3)).replaced == nil)
        #expect(queue.add(Self.publication("a", at: 4)).replaced?.milliseconds == 2)
        #expect(queue.next(behind: first)?.milliseconds == 3)
        // What the older one was allowed, the newer one is too.
        let last = queue.next(behind: first)
        #expect(last?.milliseconds == 4 && last?.mayReplace == true)
        #expect(queue.next(behind: first) == nil)
    }

    /// A record that is slow on its way does not replace the newer one of the same machine.
    @Test(.enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"))
    func slowRecordReplacesNoNewerOne() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let server = try HoldingServer(redis.url)
        let here = try await Machine(over: server, redis.url, origin)
        #expect(try await here.version("/1") == 0)
        #expect(await eventually { server.isHolding })
        origin.change("/1")
        let response = try await here.cache.respond(
            to: CacheRequest(url: Machine.host + "/1"),
            policy: .reload
        )
        #expect(try await response.body.collectText() == "1")
        // Time for the second record to overtake the first, if it can.
        await pause(milliseconds: 50)
        server.release()
        #expect(await eventually { await here.counts.published == 2 })
        let there = try await Machine.sharing(redis.url, origin)
        #expect(try await there.version("/1") == 1)
        #expect(origin.count == 2)
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    /// A record waits for so long that the fleet does not remember the removal of its response.
    @Test(.enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"))
    func removedResponseIsNotPublishedLater() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let server = try HoldingServer(redis.url)
        let here = try await Machine(over: server, redis.url, origin)
        try await Self.publishTwice(here, server, origin)
        var post = CacheRequest(url: Machine.host + "/1")
        post.method = .post
        _ = try await here.cache.respond(to: post)
        origin.change("/1")
        #expect(await eventually { (try? await Self.forgottenKey(redis)) != nil })
        // The time ends for which the key is given up.
        let forgotten = try #require(try await Self.forgottenKey(redis))
        try await redis.command("DEL", forgotten)
        server.release(failing: true)
        #expect(await eventually { await here.counts.unpublished == 2 })
        #expect(await here.counts.published == 0)
        let there = try await Machine.sharing(redis.url, origin)
        #expect(try await there.version("/1") == 2)
        for machine in [here, there] { await machine.cache.shutDown() }
    }

    /// A record waits while the log is deleted, and another machine publishes for the new one.
    @Test(.enabled(if: RedisProcess.isInstalled, "\(RedisProcess.remedy)"))
    func recordForALostLogReplacesNoGoodOne() async throws {
        let redis = try await RedisProcess()
        let origin = VersionedOrigin()
        let server = try HoldingServer(redis.url)
        let here = try await Machine(over: server, redis.url, origin)
        try await Self.publishTwice(here, server, origin)
        try await redis.command("DEL", "ce1:test:{log}:s", "ce1:test:{log}:meta")
        #expect(await eventually { await here.counts.allMarkedStale > 0 })
        var number = 1
        let knowsTheNewLog = await eventually {
            number += 1
            _ = try? await here.version("/\(number)")
            return await here.counts.published > 0
        }
        #expect(knowsTheNewLog)
        origin.change("/1")
        let there = try await Machine.sharing(redis.url, origin)
        #expect(try await there.version("/1") == 2)
        #expect(await eventually { await there.counts.published == 1 })
        let (count, unpublished) = (origin.count, await here.counts.unpublished)
        server.release(failing: true)
        #expect(await eventually { await here.counts.unpublished >= unpublished + 2 })
        let third = try await Machine.sharing(redis.url, origin)
        #expect(try await third.version("/1") == 2)
        #expect(origin.count == count)
        for machine in [here, there, third] { await machine.cache.shutDown() }
    }

    /// Publishes two versions: the first is held on its way, the second waits behind it.
    private static func publishTwice(
        _ machine: Machine,
        _ server: HoldingServer,
        _ origin: VersionedOrigin
    ) async throws {
        #expect(try await machine.version("/1") == 0)
        #expect(await eventually { server.isHolding })
        origin.change("/1")
        let response = try await machine.cache.respond(
            to: CacheRequest(url: Machine.host + "/1"),
            policy: .reload
        )
        #expect(try await response.body.collectText() == "1")
        #expect(await eventually { (try? await machine.version("/1")) == 1 })
    }

    /// The name under which Redis remembers that a key is given up; `nil` if it remembers none.
    private static func forgottenKey(_ redis: RedisProcess) async throws -> String? {
        for key in try await redis.command("KEYS", "ce1:test:*:l").elements ?? [] {
            let name = try #require(key.text)
            if try await redis.command("GET", name).text == "!" { return name }
        }
        return nil
    }
}

/// A server that keeps the first record back until the test releases it.
private final class HoldingServer: FleetServer {
    private struct State {
        var isHolding = false
        var isReleased = false
        var error: RedisError?
        var continuation: UnsafeContinuation<Void, Never>?
    }

    private let client: RedisClient
    private let state = Mutex(State())

    init(_ url: String) throws {
        client = try RedisClient(RedisURL(url), RedisOptions(readLimit: .seconds(5)))
    }

    var isHolding: Bool { state.withLock { $0.isHolding } }

    /// Sends the first record, or loses it.
    func release(failing isLost: Bool = false) {
        let continuation = state.withLock { state in
            state.isReleased = true
            if isLost { state.error = RedisError(.cut, detail: "the record is lost") }
            return state.continuation.take()
        }
        continuation?.resume()
    }

    func send(
        _ command: RESPCommand,
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> RESPValue {
        try await client.send(command, within: limit, lane: lane)
    }

    func post(
        _ command: RESPCommand,
        within limit: Duration,
        lane: RedisLane,
        follow: @escaping @Sendable (Result<RESPValue, RedisError>) -> Void
    ) {
        client.post(command, within: limit, lane: lane, follow: follow)
    }

    func together(
        _ commands: [RESPCommand],
        by key: [UInt8],
        within limit: Duration?,
        lane: RedisLane
    ) async throws(RedisError) -> [RESPValue] {
        let isFirst =
            lane == .bulk
            && state.withLock { state in
                defer { state.isHolding = true }
                return !state.isHolding
            }
        if isFirst {
            await withUnsafeContinuation { continuation in
                let isReleased = state.withLock { state in
                    if !state.isReleased { state.continuation = continuation }
                    return state.isReleased
                }
                if isReleased { continuation.resume() }
            }
            if let error = state.withLock({ $0.error }) { throw error }
        }
        return try await client.together(commands, by: key, within: limit, lane: lane)
    }

    var isSuspended: Bool { client.isSuspended }
    var counts: RedisCounts { client.counts }
    func shutDown() async { await client.shutDown() }
}

extension Machine {
    /// A machine whose records go through `server`.
    fileprivate init(
        over server: some FleetServer,
        _ url: String,
        _ origin: any Origin
    ) async throws {
        let parsed = try RedisURL(url)
        let log = try RedisClient(parsed, RedisOptions(readLimit: .seconds(5)))
        cache = try await HTTPCache(
            configuration: HTTPCache.Configuration(memory: .megabytes(16), mode: .shared),
            origin: origin,
            fleet: Fleet {
                RedisFleet(
                    log: log,
                    entries: server,
                    parsed.namespace,
                    at: parsed.hosts[0],
                    RedisFleetOptions()
                )
            }
        )
        guard await isLinked() else { throw RedisFailure("The machine does not read the log") }
    }
}
