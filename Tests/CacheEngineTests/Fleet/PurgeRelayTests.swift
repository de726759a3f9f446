import CacheTestSupport
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// A cache hands its purges to the other machines, and applies theirs.
@Suite struct PurgeRelayTests {
    private static let request = CacheRequest(url: "http://h.test/1")
    private static let fields: HeaderFields = [
        "Cache-Control": "max-age=600, stale-while-revalidate=600, stale-if-error=600",
        "Cache-Tag": "t", "ETag": "\"1\"",
    ]

    private let clock = TestClock()
    private let relay = ScriptedRelay()
    private let origin = ScriptedOrigin { request, number in
        request.fields["If-None-Match"] == "\"1\""
            ? OriginResponse(status: 304, fields: fields)
            : .whole(fields: fields, body: "\(number)")
    }

    private func cache(
        _ backing: BackingStore = .none,
        origin: (any Origin)? = nil
    ) async throws -> HTTPCache {
        var configuration = HTTPCache.Configuration(
            memory: .megabytes(8),
            backing: backing,
            mode: .shared
        )
        configuration.clock = clock
        return try await HTTPCache(
            configuration: configuration,
            origin: origin ?? self.origin,
            fleet: relay.fleet
        )
    }

    private func source(_ cache: HTTPCache) async throws -> CacheInfo.Source {
        let response = try await cache.respond(to: Self.request)
        _ = try await response.body.collect()
        return response.info.source
    }

    private func key(_ cache: HTTPCache) throws -> [UInt8] {
        try cache.services.key(of: Self.request).key.bytes
    }

    // MARK: Handing over

    @Test func everyPurgeIsHandedOverBeforeItReturns() async throws {
        let cache = try await cache()
        let key = SharedPurge.Scope.key(try key(cache))
        _ = try await source(cache)
        let isFound = try await cache.markStale(Self.request)
        #expect(isFound)
        #expect(relay.shared.last == SharedPurge(key, isSoft: true))
        #expect(try await cache.markVariantStale(Self.request))
        #expect(relay.shared.last == SharedPurge(key, isSoft: true))
        #expect(try await cache.remove(Self.request))
        #expect(relay.shared.last == SharedPurge(key, isSoft: false))
        _ = try await cache.removeVariant(Self.request)
        #expect(relay.shared.last == SharedPurge(key, isSoft: false))
        try await cache.purge(tag: "t")
        #expect(relay.shared.last == SharedPurge(.tag("t"), isSoft: false))
        try await cache.markStale(tagged: "t")
        #expect(relay.shared.last == SharedPurge(.tag("t"), isSoft: true))
        try await cache.removeAll()
        #expect(relay.shared.last == SharedPurge(.everything, isSoft: false))
        let report = try await cache.purge(.everything, isSoft: true)
        #expect(relay.shared.last == SharedPurge(.everything, isSoft: true))
        #expect(relay.shared.count == 8 && relay.areApplied.allSatisfy { $0 })
        let receipt = try #require(report.receipt)
        #expect(receipt.position == 8 && receipt.replicas == 1 && receipt.connectedReplicas == 2)
        #expect(await cache.statistics.fleet?.appended == 8)
        await cache.shutDown()
        #expect(relay.isShutDown)
    }

    /// From the announcement on no shared copy is used, so it must come before the removal.
    @Test func everyPurgeIsAnnouncedBeforeItIsApplied() async throws {
        let cache = try await cache()
        let wasStored = Mutex<[Bool]>([])
        relay.onAnnounce { purges in
            let response = cache.immediateResponse(to: Self.request)
            wasStored.withLock { $0 += purges.map { _ in response != nil } }
        }
        let purges: [@Sendable () async throws -> Void] = [
            { _ = try await cache.remove(Self.request) },
            { _ = try await cache.removeVariant(Self.request) },
            { _ = try await cache.purge(tag: "t") },
            { _ = try await cache.removeAll() },
            { _ = try await cache.markStale(Self.request) },
            { _ = try await cache.markVariantStale(Self.request) },
            { try await cache.markStale(tagged: "t") },
            { _ = try await cache.purge([.tag("t"), .everything]) },
        ]
        for purge in purges {
            _ = try await cache.removeAll()
            wasStored.withLock { $0 = [] }
            _ = try await source(cache)
            try await purge()
            let seen = wasStored.withLock { $0 }
            #expect(!seen.isEmpty && seen.allSatisfy { $0 }, "\(seen)")
        }
        #expect(relay.shared.count == 2 * purges.count + 1)
        await cache.shutDown()
    }

    /// The device hangs: each purge holds in this process at once, however many were given together.
    @Test(arguments: [false, true])
    func purgesGivenTogetherHoldBesideADeviceThatHangs(isSoft: Bool) async throws {
        let folder = TemporaryFolder()
        let pool = IOPool(threadCount: 1)
        var disk = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(64))
        disk.pool = pool
        let tagged = ScriptedOrigin { request, _ in
            let fields: HeaderFields = [
                "Cache-Control": "max-age=600", "Cache-Tag": String(request.url.suffix(1)),
            ]
            return .whole(fields: fields, body: "x")
        }
        let cache = try await cache(disk, origin: tagged)
        let requests = ["a", "b"].map { CacheRequest(url: "http://h.test/\($0)") }
        for request in requests {
            _ = try await cache.respond(to: request).body.collect()
            #expect(cache.immediateResponse(to: request) != nil)
        }
        let gate = DispatchSemaphore(value: 0)
        try await pool.hold(until: gate)
        async let purging = cache.purge([.tag("a"), .tag("b")], isSoft: isSoft)
        #expect(await eventually { cache.immediateResponse(to: requests[1]) == nil })
        for request in requests { #expect(cache.immediateResponse(to: request) == nil) }
        gate.signal()
        #expect(try await purging.entries == (isSoft ? 0 : 2))
        #expect(relay.shared.map(\.scope) == [.tag("a"), .tag("b")])
        await cache.shutDown()
    }

    @Test func tagsOfOnePurgeShareWalks() async throws {
        let cache = try await cache()
        let memory = cache.services.tiers.memory
        for number in 0..<20_000 { memory.store(MemoryFixtures.entry("k\(number)")) }
        let tags = (0..<200).map { PurgeTarget.tag("t\($0)") }
        #expect(try await cache.purge(tags).entries == 0)
        #expect(await memory.sweeper.walkCount < tags.count / 2)
        await cache.shutDown()
    }

    @Test func removalsOfThisMachineAloneAreNotHandedOver() async throws {
        let post = ScriptedOrigin { request, _ in
            .whole(fields: request.method == .get ? Self.fields : [:], body: "x")
        }
        let cache = try await cache(origin: post)
        _ = try await source(cache)
        try await cache.endSession()
        try await cache.removeAll(in: .storedBefore(unixSeconds: 1))
        try await cache.removeAll(in: .storedAfter(unixSeconds: 1 << 40))
        _ = try await source(cache)
        var unsafe = Self.request
        unsafe.method = .delete
        _ = try await cache.respond(to: unsafe)
        #expect(await cache.statistics.invalidations == 1)
        #expect(relay.shared.isEmpty)
        await cache.shutDown()
    }

    @Test func purgeWaitsForTheFleetIfItIsToldTo() async throws {
        let cache = try await cache()
        relay.reach(FleetReach(machines: 3, applied: 2))
        #expect(try await cache.purge(.tag("t")).receipt?.reach == nil)
        #expect(relay.waited.isEmpty)
        let receipt = try await cache.purge(.tag("t"), waitingFor: .fleet).receipt
        #expect(receipt?.reach == FleetReach(machines: 3, applied: 2))
        #expect(receipt?.reach?.isComplete == false)
        #expect(relay.waited == [2])
        relay.reach(FleetReach(machines: 3, applied: 3))
        let report = try await cache.purge(.everything, isSoft: true, waitingFor: .fleet)
        #expect(report.receipt?.reach?.isComplete == true)
        relay.reach(nil)
        #expect(try await cache.purge(.tag("t"), waitingFor: .fleet).receipt?.reach == nil)
        // Without a log there is nothing to wait for.
        relay.fail(CacheError(.fleetFailed, detail: "no log"))
        await #expect(throws: CacheError.self) {
            try await cache.purge(.tag("t"), waitingFor: .fleet)
        }
        #expect(relay.waited == [2, 3, 4])
        await cache.shutDown()
        let alone = try await HTTPCache(origin: origin)
        #expect(try await alone.purge(.tag("t"), waitingFor: .fleet).receipt == nil)
        await alone.shutDown()
    }

    @Test func purgeThatTheLogRefusesIsAppliedHereAndSaysSo() async throws {
        let cache = try await cache()
        _ = try await source(cache)
        relay.fail(CacheError(.fleetFailed, detail: "no log"))
        for purge in [
            { _ = try await cache.remove(Self.request) }, { _ = try await cache.purge(tag: "t") },
            { _ = try await cache.purge(.request(Self.request)) },
        ] as [@Sendable () async throws -> Void] {
            _ = try await source(cache)
            let error = await #expect(throws: CacheError.self) { try await purge() }
            #expect(error?.code == .purgeNotShared)
            #expect(error?.detail.hasSuffix("send it again: no log") == true)
            #expect(try await cache.storedResponse(for: Self.request) == nil)
        }
        await cache.shutDown()
    }

    @Test func invalidURLIsRefusedBeforeAnythingIsPurged() async throws {
        let cache = try await cache()
        _ = try await source(cache)
        await #expect(throws: CacheError.self) {
            try await cache.purge([.tag("t"), .request(CacheRequest(url: "nothing"))])
        }
        #expect(relay.shared.isEmpty)
        #expect(try await source(cache) == .fresh)
        await cache.shutDown()
    }

    // MARK: Several targets

    @Test func targetsOfOneCallShareAReport() async throws {
        let cache = try await cache()
        _ = try await source(cache)
        let other = CacheRequest(url: "http://h.test/2")
        _ = try await cache.respond(to: other).body.collect()
        // The entry of the URL carries the tag, and counts once.
        let report = try await cache.purge([.tag("t"), .request(Self.request), .tag("none")])
        #expect(report.entries == 2)
        #expect(report.receipt?.position == 3)
        #expect(relay.shared.count == 3 && relay.areApplied.allSatisfy { $0 })
        let empty = try await cache.purge([])
        #expect(empty.entries == 0 && empty.receipt == nil)
        _ = try await source(cache)
        let soft = try await cache.purge([.request(Self.request), .request(other)], isSoft: true)
        #expect(soft.entries == 1)
        #expect(try await source(cache) == .stale)
        await cache.shutDown()
    }

    @Test func targetsBeyondTheLimitAreRefusedBeforeAnythingIsPurged() async throws {
        let cache = try await cache()
        _ = try await source(cache)
        let targets = [PurgeTarget](repeating: .tag("t"), count: 1_025)
        let error = await #expect(throws: CacheError.self) { try await cache.purge(targets) }
        #expect(error?.code == .requestInvalid)
        #expect(error?.detail.contains(" 1025 targets, more than 1024;") == true)
        #expect(relay.shared.isEmpty)
        #expect(try await source(cache) == .fresh)
        #expect(try await cache.purge(Array(targets.dropLast())).entries == 1)
        await cache.shutDown()
    }

    /// The log may take what the storage of this machine has refused.
    @Test func targetsAreAppliedAndSharedBesideOneThatFails() async throws {
        let store = TagFailingStore()
        let cache = try await cache(.custom(store))
        _ = try await source(cache)
        await #expect(throws: (any Error).self) {
            try await cache.purge([.tag("failing"), .request(Self.request)])
        }
        #expect(try await cache.storedResponse(for: Self.request) == nil)
        #expect(relay.shared.count == 2)
        #expect(relay.areApplied == [false, false])
        await cache.shutDown()
    }

    @Test func cacheWithoutAFleetHasNoReceipt() async throws {
        let cache = try await HTTPCache(origin: origin)
        let report = try await cache.purge(.tag("t"))
        #expect(report.receipt == nil && report.entries == 0)
        #expect(await cache.statistics.fleet == nil)
        await cache.shutDown()
    }

    // MARK: Applying

    @Test(arguments: [false, true], [0, 1, 2])
    func purgeOfAnotherMachineIsApplied(isSoft: Bool, _ kind: Int) async throws {
        let folder = TemporaryFolder()
        let disk = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(64))
        let cache = try await cache(disk)
        #expect(try await source(cache) == .origin)
        let scope = [.key(try key(cache)), .tag("t"), SharedPurge.Scope.everything][kind]
        try await relay.receiver?.apply(SharedPurge(scope, isSoft: isSoft))
        let source = try await source(cache)
        if !isSoft {
            #expect(source == .origin)
        } else {
            // Everything may concern entries that were removed elsewhere.
            #expect(source == (kind == 2 ? .revalidated : .stale))
        }
        #expect(relay.shared.isEmpty, "it is not handed back")
        await cache.shutDown()
    }

    @Test func softPurgeOfAResourceMarksItsVariants() async throws {
        let origin = ScriptedOrigin { _, number in
            var fields = Self.fields
            fields["Vary"] = "Accept-Language"
            return .whole(fields: fields, body: "\(number)")
        }
        let cache = try await cache(origin: origin)
        #expect(try await source(cache) == .origin)
        #expect(try await source(cache) == .fresh)
        try await relay.receiver?.apply(SharedPurge(.key(try key(cache)), isSoft: true))
        #expect(try await source(cache) == .stale)
        await cache.waitUntilIdle()
        #expect(try await source(cache) == .fresh)
        await cache.shutDown()
    }

    /// Without the log, a purge may have been missed: nothing is served before the origin confirms
    /// it, though stale responses would be permitted.
    @Test(arguments: [false, true])
    func doubtedEntryIsServedOnlyAfterTheOriginConfirmsIt(isOnDisk: Bool) async throws {
        let folder = TemporaryFolder()
        let disk = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(64))
        let cache = try await cache(isOnDisk ? disk : .none)
        _ = try await source(cache)
        try await relay.receiver?.markEverythingStale()
        let script = origin
        #expect(try await source(cache) == .revalidated)
        #expect(try await source(cache) == .fresh)
        try await relay.receiver?.markEverythingStale()
        script.cutOff()
        await #expect(throws: CacheError.self) { try await source(cache) }
        await cache.shutDown()
    }

    /// A soft purge of the URL renews the entry, which must not count as stored since.
    @Test(arguments: [false, true])
    func softPurgeOfAURLKeepsTheDoubt(isOnDisk: Bool) async throws {
        let folder = TemporaryFolder()
        let disk = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(64))
        let cache = try await cache(isOnDisk ? disk : .none)
        _ = try await source(cache)
        try await relay.receiver?.markEverythingStale()
        #expect(try await cache.markStale(Self.request))
        #expect(try await source(cache) == .revalidated)
        #expect(try await source(cache) == .fresh)
        await cache.shutDown()
    }

    @Test func doubtSurvivesTheEndOfTheProcess() async throws {
        let folder = TemporaryFolder()
        let disk = BackingStore.disk(path: folder.path + "/c", capacity: .megabytes(64))
        var cache = try await cache(disk)
        _ = try await source(cache)
        #expect(relay.receiver?.mayHoldOlderEntries == false)
        try await relay.receiver?.markEverythingStale()
        await cache.shutDown()
        cache = try await self.cache(disk)
        #expect(relay.receiver?.mayHoldOlderEntries == true)
        #expect(try await source(cache) == .revalidated)
        await cache.shutDown()
        cache = try await self.cache(disk)
        #expect(try await source(cache) == .fresh)
        await cache.shutDown()
    }

    @Test func noteIsKeptBesideTheEntriesAndIsNotForeign() async throws {
        let folder = TemporaryFolder()
        let path = folder.path + "/c"
        var cache = try await cache(.disk(path: path, capacity: .megabytes(64)))
        #expect(await relay.receiver?.bookmark() == nil)
        for text in ["first", "a longer second"] {
            try await relay.receiver?.keep(bookmark: Array(text.utf8))
            #expect(await relay.receiver?.bookmark() == Array(text.utf8))
        }
        await cache.shutDown()
        let closed = relay.receiver
        await #expect(throws: CacheError.self) { try await closed?.keep(bookmark: [1]) }
        cache = try await self.cache(.disk(path: path, capacity: .megabytes(64)))
        #expect(await relay.receiver?.bookmark() == Array("a longer second".utf8))
        await cache.shutDown()
        // A directory without its manifests is laid out again: the note is the cache's own.
        for name in ManifestSearch.names {
            try FileManager.default.removeItem(atPath: "\(path)/\(name)")
        }
        cache = try await self.cache(.disk(path: path, capacity: .megabytes(64)))
        #expect(try await source(cache) == .origin)
        await cache.shutDown()
    }

    @Test func fetchUnderWayIsNotStoredOnceEverythingIsDoubted() async throws {
        let held = HeldOrigin()
        let cache = try await cache(origin: held)
        async let answer = source(cache)
        while held.count == 0 { await Task.yield() }
        try await relay.receiver?.markEverythingStale()
        held.exchanges[0].answer()
        #expect(try await answer == .origin)
        #expect(try await cache.storedResponse(for: Self.request) == nil)
        await cache.shutDown()
    }
}

/// A store that fails at the removal of one tag.
private final class TagFailingStore: CacheStore {
    struct Failure: Error {}

    private let inner = InMemoryStore()

    func entry(for key: StoreKey) async throws -> StoredEntry? { try await inner.entry(for: key) }
    func store(_ entry: StoredEntry) async throws -> StoreOutcome { try await inner.store(entry) }
    func remove(_ key: StoreKey) async throws -> Bool { try await inner.remove(key) }
    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        if scope == .tag("failing") { throw Failure() }
        return try await inner.removeAll(in: scope)
    }
    func usage() async -> StoreUsage { await inner.usage() }
    func flush() async throws { try await inner.flush() }
}
