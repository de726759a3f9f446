import CacheTestSupport
import HTTPCaching
import Synchronization
import Testing

@testable import CacheEngine

/// A disk that hangs: every wait for it has a limit, and it is used again once it goes on.
@Suite(.timeLimit(.minutes(1))) struct HangingDiskTests {
    private static let fields: HeaderFields = ["Cache-Control": "max-age=600"]

    private let device = HangingDevice()
    private let told = Told()

    /// The errors of the storage that the application was told of.
    private final class Told: Sendable {
        let errors = Mutex<[CacheError]>([])

        func note(_ event: CacheEvent) {
            guard case .storageFailed(let error as CacheError) = event else { return }
            errors.withLock { $0.append(error) }
        }
    }

    /// A request under way.
    private final class Reply: Sendable {
        private let result = Mutex<Result<String, any Error>?>(nil)
        private let task = TaskHandle()

        init(_ cache: HTTPCache, _ request: CacheRequest, policy: CachePolicy? = nil) {
            let asking = Task {
                do {
                    let response = try await cache.respond(to: request, policy: policy)
                    end(.success(try await response.body.collect().text))
                } catch { end(.failure(error)) }
            }
            task.attach(asking)
        }

        private func end(_ result: Result<String, any Error>) {
            self.result.withLock { $0 = result }
        }

        var hasEnded: Bool { result.withLock { $0 != nil } }
        var text: String? { result.withLock { try? $0?.get() } }
        var error: (any Error)? {
            if case .failure(let error) = result.withLock({ $0 }) { return error }
            return nil
        }

        func cancel() { task.cancel() }
    }

    private func stage(
        _ origin: ScriptedOrigin = ScriptedOrigin(fields: Self.fields, body: "old"),
        clock: TestClock = TestClock(),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> Stage {
        try await Stage(origin, clock: clock) {
            $0.memory = .disabled
            $0.backing = .disk(path: "/cache", capacity: .megabytes(64))
            $0.backing.fileSystem = .replaced(device.files)
            $0.backing.pool = IOPool(threadCount: 2)
            $0.backing.flushMilliseconds = 1_000_000
            $0.hooks.onEvent = { [told] in told.note($0) }
            $0.hooks.willStore = { $0.fields.contains("X-Refused") ? nil : $0 }
            change(&$0)
        }
    }

    /// A cache with entries that are on disk only, of which the origin now has others.
    ///
    /// Each read of one waits for the device.
    private func filledStage(_ urls: [String] = [Stage.url]) async throws -> Stage {
        let stage = try await stage()
        for url in urls { _ = try await stage.get(url) }
        try await stage.cache.flush()
        device.files.plan.cold = 1_000
        stage.origin.follow { _, _ in .whole(fields: Self.fields, body: "new") }
        return stage
    }

    /// Lets at most `seconds` pass, in small steps, until something has come; returns whether it has.
    private func passes(
        _ seconds: Double,
        _ stage: Stage,
        until hasCome: () -> Bool
    ) async -> Bool {
        var steps = Int(seconds * 4)
        return await eventually {
            if hasCome() { return true }
            guard steps > 0 else { return false }
            stage.clock.advance(seconds: 0.25)
            steps -= 1
            return false
        }
    }

    private func disk(_ stage: Stage) throws -> DiskTier {
        try #require(stage.cache.services.tiers.backing as? DiskTier)
    }

    /// Lets the device go on, and waits until the cache uses it again.
    private func goOn(_ stage: Stage) async throws {
        device.goOn()
        let watch = try disk(stage).watch
        #expect(await eventually { !watch.isHanging && device.heldCount == 0 })
    }

    // MARK: Look-ups

    @Test func requestWithLittleTimeGetsTheAnswerOfTheOrigin() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopReads()
        let sleepers = stage.clock.sleeperCount
        var request = CacheRequest(url: Stage.url)
        request.options.timeout = .seconds(1)
        let reply = Reply(stage.cache, request)
        let isWaiting = await eventually {
            device.heldCount == 1 && stage.clock.sleeperCount > sleepers
        }
        #expect(isWaiting && !reply.hasEnded)
        stage.clock.advance(seconds: 0.75)
        #expect(await eventually { reply.hasEnded })
        #expect(reply.text == "new")
        try await goOn(stage)
        #expect(await stage.cache.statistics.storageErrors == 0)
        await stage.end()
    }

    @Test func cancelledRequestEndsAtOnce() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopReads()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url))
        #expect(await eventually { device.heldCount == 1 })
        reply.cancel()
        #expect(await eventually(seconds: 5) { reply.hasEnded })
        #expect(reply.error is CancellationError)
        try await goOn(stage)
        await stage.end()
    }

    /// The first requests wait up to the limit; those that follow ask the origin at once.
    @Test func deviceThatHangsIsOneFailureAndNotAskedMeanwhile() async throws {
        let urls = (1...4).map { "http://example.com/\($0)" }
        let stage = try await filledStage(urls)
        defer { device.goOn() }
        device.stopReads()
        let replies = urls[..<2].map { Reply(stage.cache, CacheRequest(url: $0)) }
        #expect(await eventually { device.heldCount == 2 })
        #expect(await passes(8, stage) { replies.allSatisfy(\.hasEnded) })
        #expect(replies.allSatisfy { $0.text == "new" })
        let later = Reply(stage.cache, CacheRequest(url: urls[2]))
        #expect(await eventually(seconds: 5) { later.hasEnded })
        #expect(later.text == "new")
        let statistics = await stage.cache.statistics
        #expect(statistics.storageErrors == 1 && statistics.originFailures == 0)
        let error = try #require(told.errors.withLock { $0.first })
        #expect(told.errors.withLock { $0.count } == 1 && error.code == .storageTimedOut)
        #expect(
            error.detail
                == "The disk in /cache has not answered for 5.0 seconds; "
                + "requests go on without it until it does"
        )
        try await goOn(stage)
        let answer = try await stage.get(urls[3])
        #expect(answer.body == "old" && answer.info.tier == .disk)
        await stage.end()
    }

    /// The limit is an option, and leaves the origin half of its own time.
    @Test(arguments: [(operation: 1.0, head: 60.0), (operation: 5.0, head: 2.0)])
    func limitIsThatOfTheConfiguration(operation: Double, head: Double) async throws {
        let first = try await filledStage()
        await first.end()
        let origin = ScriptedOrigin(fields: Self.fields, body: "new")
        let stage = try await stage(origin) {
            $0.backing.storeLimits.maximumOperationTime = .seconds(operation)
            $0.originLimits.maximumHeadTime = .seconds(head)
        }
        defer { device.goOn() }
        device.stopReads()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url))
        let isWaiting = await eventually {
            device.heldCount == 1 && stage.clock.sleeperCount > 0
        }
        #expect(isWaiting)
        let before = stage.clock.monotonicNanoseconds
        #expect(await passes(8, stage) { reply.hasEnded })
        #expect(stage.clock.monotonicNanoseconds - before <= 2_500_000_000)
        #expect(reply.text == "new")
        try await goOn(stage)
        await stage.end()
    }

    /// A request with little time says nothing about the device.
    @Test func deviceThatIsSlowerThanARequestDoesNotHang() async throws {
        let first = try await filledStage()
        await first.end()
        let stage = try await stage(ScriptedOrigin(fields: Self.fields, body: "new")) {
            $0.originLimits.maximumHeadTime = .seconds(2)
        }
        defer { device.goOn() }
        device.stopReads()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url))
        let isWaiting = await eventually {
            device.heldCount == 1 && stage.clock.sleeperCount > 0
        }
        #expect(isWaiting)
        #expect(await passes(3, stage) { reply.hasEnded })
        #expect(reply.text == "new")
        let isHanging = try disk(stage).watch.isHanging
        #expect(!isHanging)
        try await goOn(stage)
        #expect(await stage.cache.statistics.storageErrors == 0)
        await stage.end()
    }

    // MARK: What a look-up must not miss

    @Test(arguments: [false, true])
    func reloadEndsTheOldResponse(isStorable: Bool) async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        stage.origin.follow { _, _ in
            let fields: HeaderFields =
                isStorable
                ? ["Cache-Control": "max-age=600", "X-Refused": "by the hook"]
                : ["Cache-Control": "no-store"]
            return .whole(fields: fields, body: "new")
        }
        device.stopReads()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url), policy: .reload)
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(12, stage) { reply.hasEnded })
        #expect(reply.text == "new")
        try await goOn(stage)
        #expect(try await !stage.holds())
        await stage.end()
    }

    @Test func softPurgeOfOneVariantHolds() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopReads()
        let hash = try stage.cache.services.key(of: CacheRequest(url: Stage.url)).key.hash
        let disk = try disk(stage)
        async let marking = stage.cache.markVariantStale(CacheRequest(url: Stage.url))
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(1, stage) { disk.currentToken(hash) == nil })
        try await goOn(stage)
        let isMarked = try await marking
        #expect(isMarked)
        #expect(try await stage.get().body == "new")
        await stage.end()
    }

    /// An older set of selecting fields selects a variant in memory, and the newest one a variant that
    /// the device does not return.
    @Test func softPurgeReachesAVariantThatIsNotReadInTime() async throws {
        let older: HeaderFields = ["Cache-Control": "max-age=10", "Vary": "Accept-Encoding"]
        let stage = try await stage(ScriptedOrigin(fields: older, body: "older")) {
            $0.memory = .megabytes(4)
        }
        defer { device.goOn() }
        let request = CacheRequest(
            url: Stage.url,
            fields: ["Accept-Encoding": "gzip", "Accept-Language": "de"]
        )
        _ = try await stage.send(request)
        stage.clock.advance(seconds: 11)
        let narrower: HeaderFields = [
            "Cache-Control": "max-age=600", "Vary": "Accept-Encoding, Accept-Language",
        ]
        stage.origin.follow { _, _ in .whole(fields: narrower, body: "old") }
        _ = try await stage.send(request)
        stage.origin.follow { _, _ in .whole(fields: narrower, body: "new") }
        try await stage.cache.flush()
        let services = stage.cache.services
        let key = try services.key(of: request).key
        let variants = await Lookup(services).candidates(for: key, request.fields.section)
        try #require(variants.count == 2)
        let newest = variants[0]
        _ = newest.bytes.withUnsafeBytes { services.tiers.memory.remove(newest.hash, key: $0) }
        let disk = try disk(stage)
        #expect(disk.currentToken(key.hash) != nil)
        device.files.plan.cold = 1_000
        device.stopReads()
        async let marking = stage.cache.markVariantStale(request)
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(1, stage) { disk.currentToken(key.hash) == nil })
        try await goOn(stage)
        let isMarked = try await marking
        #expect(isMarked)
        #expect(try await stage.send(request).body == "new")
        await stage.end()
    }

    /// The old record would be as good as before it was confirmed.
    @Test func renewalThatCannotReadTheRecordRemovesIt() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        let services = stage.cache.services
        let tiers = services.tiers
        let key = try services.key(of: CacheRequest(url: Stage.url)).key
        let old = try #require(await tiers.entry(key)).0
        let stored = try #require(StoredResponse(old))
        var facts = stored.facts
        facts.freshnessLifetimeSeconds = 7
        let new = await tiers.renewed(
            old,
            as: EntryBuilder(renewing: stored, facts: facts).blueprint
        )
        device.stopReads()
        let ticket = tiers.ledger.ticket()
        let replacing = Task { await tiers.replace(old, by: new, since: ticket) }
        #expect(await eventually { device.heldCount == 1 })
        let disk = try disk(stage)
        #expect(await passes(8, stage) { disk.currentToken(key.hash) == nil })
        let isReplaced = await replacing.value
        #expect(isReplaced)
        try await goOn(stage)
        #expect(await tiers.entry(key) == nil)
        await stage.end()
    }

    // MARK: Writes

    @Test func responseIsDeliveredThoughItsRecordCannotBeWritten() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopWrites()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url), policy: .reload)
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(8, stage) { reply.hasEnded })
        #expect(reply.text == "new")
        // The record on disk is older, and is not read.
        let next = Reply(stage.cache, CacheRequest(url: Stage.url))
        #expect(await eventually(seconds: 5) { next.hasEnded })
        #expect(next.text == "new" && stage.origin.count == 2)
        try await goOn(stage)
        try await stage.cache.flush()
        #expect(try await stage.get().body == "new")
        await stage.end()
        let second = try await self.stage()
        #expect(try await second.get().body == "new")
        #expect(second.origin.count == 0)
        await second.end()
    }

    @Test func unsafeRequestIsAnsweredThoughItsRemovalCannotBeWritten() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopWrites()
        let reply = Reply(stage.cache, CacheRequest(method: .delete, url: Stage.url))
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(8, stage) { reply.hasEnded })
        #expect(reply.text == "new")
        try await goOn(stage)
        #expect(try await !stage.holds())
        await stage.end()
    }

    @Test func bodyThatTheDeviceDoesNotTakeReachesItsReaders() async throws {
        let body = ManualBody()
        let piece = String(repeating: "0123456789abcdef", count: 4_096)
        let count = 48 * piece.utf8.count
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: Self.fields,
                body: body.stream(count: count)
            )
        }
        let stage = try await stage(origin) {
            $0.memory = .megabytes(1)
            // Shorter than the wait for the device.
            $0.originLimits.maximumIdleTime = .seconds(2)
        }
        defer { device.goOn() }
        device.stopWrites(after: 3)
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url))
        for _ in 0..<48 { body.feed(piece) }
        body.finish()
        #expect(await eventually { device.heldCount == 1 })
        #expect(await passes(8, stage) { reply.hasEnded })
        let isWhole = reply.text == String(repeating: piece, count: 48)
        #expect(isWhole)
        let statistics = await stage.cache.statistics
        #expect(statistics.originFailures == 0 && statistics.storageErrors == 1)
        #expect(statistics.refusals == [StoreRefusalReason("device-failed"): 1])
        try await goOn(stage)
        #expect(await eventually { device.files.paths.allSatisfy { !$0.hasSuffix(".body") } })
        await stage.end()
    }

    // MARK: The shutdown

    @Test func shutDownEndsAtItsLimitAndLeavesTheDirectoryLocked() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        _ = try await stage.get("http://example.com/queued")
        device.stopWrites()
        let hasEnded = Atomic(false)
        let ending = Task {
            await stage.cache.shutDown()
            hasEnded.store(true, ordering: .releasing)
        }
        let isClosing = await eventually {
            device.heldCount > 0 && stage.clock.sleeperCount == 1
        }
        #expect(isClosing)
        let before = stage.clock.monotonicNanoseconds
        let isOver = await passes(12, stage) { hasEnded.load(ordering: .acquiring) }
        #expect(isOver)
        #expect(stage.clock.monotonicNanoseconds - before <= 10_500_000_000)
        let refusal = await #expect(throws: CacheError.self) { try await self.stage() }
        #expect(refusal?.code == .directoryInUse)
        device.goOn()
        await ending.value
        var second: Stage?
        let isFree = await eventually {
            second = try? await self.stage()
            return second != nil
        }
        #expect(isFree)
        let heir = try #require(second)
        #expect(try await heir.get("http://example.com/queued").info.tier == .disk)
        await heir.end()
    }

    /// A look-up that waits ends with the shutdown.
    @Test func requestThatWaitsEndsWithTheShutdown() async throws {
        let stage = try await filledStage()
        defer { device.goOn() }
        device.stopReads()
        let reply = Reply(stage.cache, CacheRequest(url: Stage.url))
        #expect(await eventually { device.heldCount == 1 })
        let ending = Task { await stage.cache.shutDown() }
        #expect(await passes(12, stage) { reply.hasEnded })
        #expect((reply.error as? CacheError)?.code == .shutDown)
        device.goOn()
        await ending.value
    }
}
