import CacheTestSupport
import Testing

@testable import CacheEngine

/// A removal or replacement is in the log before the response that reports it ends.
///
/// The process or the machine ends right after the response, and the reopened cache does not serve
/// the old entry.
@Suite struct RemovalDurabilityTests {
    /// Every operation that removes or replaces an entry on disk.
    enum Change: CaseIterable {
        case unsafeMethod, reload, reloadOfPieces, revalidatedUnstored, confirmedShorter
        case replacedByVariants, headThatDiffers, storedByHand, removed, variantRemoved, purged,
            purgedAll
        case softByRequest, variantSoftByRequest, softByTag

        /// The removals that the application requests and that store no new response.
        static let asked: [Change] = [
            .removed, .variantRemoved, .purged, .purgedAll, .softByRequest, .variantSoftByRequest,
            .softByTag,
        ]
    }

    let clock = TestClock()

    // MARK: Killed processes

    @Test(arguments: Change.allCases)
    func noOldEntryIsFreshAfterAKillThatFollowsTheResponse(change: Change) async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = try await loaded(files)
        try await perform(change, on: stage)
        try await expectNothingOld(
            in: files.copy(afterPowerCut: false),
            "\(change), killed"
        )
        await stage.end()
        try await expectNothingOld(in: files.copy(afterPowerCut: false), "\(change), closed")
    }

    /// No entry on a disk with the smallest segments can carry the tag, but one in memory can.
    @Test func tagThatFitsNoSegmentIsNotWritten() async throws {
        let store = DiskStore()
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1, tags: ["short"]))
        try await tier.flush()
        let tag = String(repeating: "t", count: TagList.tagBytesMax)
        _ = try await tier.removeAll(in: .tag(tag))
        let inMemory = try store.entry(2, tags: [tag])
        try await tier.markStale(tag)
        #expect(tier.isMarkedStale(inMemory))
        try await tier.flush()
        #expect(try await store.version(1) == 0)
        _ = try await store.reopen()
        #expect(try await store.version(1) == 0)
        await store.close()
    }

    /// A soft purge returns once it is in every shard's log.
    @Test(arguments: [false, true])
    func softPurgeByTagSurvivesWhateverEndsTheProcess(isKilled: Bool) async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = try await loaded(files)
        try await stage.cache.markStale(tagged: "t")
        if !isKilled { await stage.end() }
        var device = files.copy(afterPowerCut: false)
        for _ in 0..<2 {
            let idle = try await reopened(device)
            await idle.end()
            device = device.copy(afterPowerCut: false)
        }
        let again = try await reopened(device)
        #expect(try await again.get().source == .revalidated)
        #expect(again.origin.count == 1)
        #expect(try await again.get().source == .fresh, "confirmed since")
        let confirmed = try await reopened(device.copy(afterPowerCut: false))
        #expect(try await confirmed.get().source == .fresh, "and killed since")
        await again.end()
        await confirmed.end()
        await stage.end()
    }

    // MARK: Power cuts

    @Test(arguments: Change.asked)
    func confirmedRemovalSurvivesPowerCuts(change: Change) async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = try await loaded(files, .onRemoval)
        try await perform(change, on: stage)
        for seed in 0..<UInt64(16) {
            try await expectNothingOld(
                in: files.copy(afterPowerCut: true, seed: seed),
                "\(change), power cut \(seed)"
            )
        }
        await stage.end()
    }

    @Test func removalByAnUnsafeMethodSurvivesPowerCuts() async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = try await loaded(files, .onRemoval)
        try await perform(.unsafeMethod, on: stage)
        for seed in 0..<UInt64(16) {
            let device = files.copy(afterPowerCut: true, seed: seed)
            try await expectNothingOld(in: device, "power cut \(seed)")
        }
        await stage.end()
    }

    /// After a flush `onSegmentSeal` keeps every kind of change too.
    @Test(arguments: [BackingStore.Durability.onSegmentSeal, .onRemoval])
    func flushedChangesSurvivePowerCuts(durability: BackingStore.Durability) async throws {
        for change in Change.allCases {
            let files = FaultyFileSystem(seed: 1)
            let stage = try await loaded(files, durability)
            try await perform(change, on: stage)
            try await stage.cache.flush()
            for seed in 0..<UInt64(4) {
                let device = files.copy(afterPowerCut: true, seed: seed)
                try await expectNothingOld(in: device, "\(change), power cut \(seed)")
            }
            await stage.end()
        }
    }

    // MARK: A device that does not confirm

    /// A tier without writes in the background, whose entry 1 is on the device.
    ///
    /// A synchronisation that fails loses what it was to write.
    private static func store(
        _ files: FaultyFileSystem,
        _ durability: DiskConfiguration.Durability = .onRemoval
    ) async throws -> (DiskStore, DiskTier) {
        let store = DiskStore(volume: .replaced(files))
        store.configuration.durability = durability
        store.configuration.flushMilliseconds = 1_000_000
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(1))
        try await tier.flush()
        files.plan.losesUnconfirmed = true
        return (store, tier)
    }

    /// Expects that no power cut brings entry 1 back.
    static func expectRemoved(_ store: DiskStore, in files: FaultyFileSystem) async throws {
        for seed in 0..<UInt64(16) {
            let device = files.copy(afterPowerCut: true, seed: seed)
            let again = DiskStore(volume: .replaced(device))
            again.configuration = store.configuration
            _ = try await again.open()
            #expect(try await again.version(1) == nil, "power cut \(seed)")
            await again.close()
        }
    }

    /// The removal is in a segment that was given up after its synchronisation had failed.
    @Test func sealOfAnotherSegmentConfirmsNoRemoval() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, tier) = try await Self.store(files)
        let key = try store.storeKey(1)
        files.plan.unconfirmed = files.paths.first { $0.hasSuffix(".seg") }
        #expect(files.plan.unconfirmed != nil)
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        files.plan.writeError = 1_000
        _ = tier.enqueue(try store.entry(2))
        await #expect(throws: CacheError.self) { try await tier.flush() }
        files.plan.writeError = 0
        for number in 10..<200 {
            _ = tier.enqueue(try store.entry(number, version: 4))
            if number % 20 == 0 { try? await tier.flush() }
        }
        #expect(files.paths.filter { $0.hasSuffix(".seg") }.count > 2, "another one was sealed")
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        files.plan = .init()
        _ = try await tier.remove(key)
        try await Self.expectRemoved(store, in: files)
        await store.close()
    }

    /// The footer of the segment lists the removal, wherever its own page is.
    @Test func removalIsConfirmedByTheFooterAfterAFailedSynchronisation() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, tier) = try await Self.store(files)
        let key = try store.storeKey(1)
        files.plan.synchronizeError = 1_000
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        files.plan = .init()
        _ = try await tier.remove(key)
        try await Self.expectRemoved(store, in: files)
        _ = tier.enqueue(try store.entry(3))
        try await tier.flush()
        #expect(try await store.version(3) == 0)
        await store.close()
    }

    /// The header of the segment was to be synchronised with the removal.
    @Test func removalIsConfirmedThoughTheHeaderBeforeItWasLost() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, _) = try await Self.store(files, .onSegmentSeal)
        files.endProcess()
        // The life that follows a kill begins a segment.
        let tier = try await store.open()
        #expect(try await tier.remove(store.storeKey(1)))
        files.plan.synchronizeError = 1_000
        await #expect(throws: CacheError.self) { try await tier.flush() }
        files.plan = .init()
        try await tier.flush()
        try await Self.expectRemoved(store, in: files)
        await store.close()
    }

    /// The device fails to synchronise the removal, in the life that wrote it and in the next one.
    @Test func removalInASegmentThatIsSealedAgainIsConfirmed() async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, first) = try await Self.store(files)
        let key = try store.storeKey(1)
        files.plan.unconfirmed = files.paths.first { $0.hasSuffix(".seg") }
        await #expect(throws: CacheError.self) { _ = try await first.remove(key) }
        files.endProcess()
        let tier = try await store.open()
        await #expect(throws: CacheError.self) { _ = try await tier.remove(key) }
        files.plan = .init()
        #expect(try await !tier.remove(key))
        try await Self.expectRemoved(store, in: files)
        await store.close()
    }

    // MARK: A power cut that leaves a hole

    /// The cut loses most of what a life has appended to a segment, except its last batch.
    @Test(arguments: [false, true])
    func segmentWithAHoleIsNotContinued(isKilled: Bool) async throws {
        let files = FaultyFileSystem(seed: 1)
        let (store, _) = try await Self.store(files)
        await store.close()
        let path = try #require(files.paths.first { $0.hasSuffix(".seg") })
        let second = try await store.open()
        for number in 10..<46 {
            _ = second.enqueue(try store.entry(number, version: 4, bytes: 900))
        }
        try await second.flush()
        let before = try #require(files.bytes(of: path))
        _ = second.enqueue(try store.entry(2, version: 4, bytes: 900))
        try await second.flush()
        let after = try #require(files.bytes(of: path))
        files.endProcess()
        // The header and the first life stay, and so does the last batch.
        let last = try #require(after.indices.first { before[$0] != after[$0] })
        let hole = 2 * pageBytes..<last
        #expect(hole.count > 32 << 10, "a scan looks no farther than half a segment")
        var cut = after
        cut.replaceSubrange(hole, with: [UInt8](repeating: 0, count: hole.count))
        files.replace(path, with: cut)
        let third = try await store.open()
        _ = third.enqueue(try store.entry(2, version: 1))
        try await third.flush()
        #expect(try await third.remove(store.storeKey(2)))
        if isKilled { files.endProcess() } else { await store.close() }
        _ = try await store.open()
        #expect(try await store.version(2) == nil)
        #expect(try await store.version(1) == 0)
        await store.close()
    }

    // MARK: Cost

    /// Storing a key that has no copy on disk waits for no write.
    @Test func storingANewKeyWaitsForNoWrite() async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = try await loaded(files)
        let disk = try #require(stage.cache.services.tiers.backing as? DiskTier)
        let written = disk.statistics.bytesWritten
        for number in 0..<20 { _ = try await stage.get("http://example.com/new/\(number)") }
        #expect(disk.statistics.bytesWritten == written)
        #expect(disk.statistics.queuedBytes > 0)
        await stage.end()
    }

    // MARK: Order of soft purges

    /// Two stores and a soft purge within one second.
    @Test(arguments: [true, false])
    func entryStoredAfterASoftPurgeIsFresh(hasDisk: Bool) async throws {
        let files = FaultyFileSystem(seed: 1)
        let stage = hasDisk ? try await loaded(files) : try await inMemory()
        _ = try await stage.get()
        try await stage.cache.markStale(tagged: "t")
        #expect(try await stage.get().source == .revalidated)
        #expect(try await stage.get().source == .fresh)
        try await stage.cache.markStale(tagged: "other")
        #expect(try await stage.get().source == .fresh)
        await stage.end()
    }

    /// Reclaim rewrites an entry in use, which must not count as a confirmation.
    @Test func reclaimedEntryStaysStale() async throws {
        let store = DiskStore(volume: .replaced(FaultyFileSystem(seed: 1)))
        let tier = try await store.open()
        _ = tier.enqueue(try store.entry(0, bytes: 900, tags: ["t"]))
        try await tier.flush()
        try await tier.markStale("t")
        var readings = 0
        for number in 1..<2_000 {
            _ = tier.enqueue(try store.entry(number, bytes: 900))
            if number % 20 == 0 { try await tier.flush() }
            for _ in 0..<2 {
                guard let entry = try await store.read(0) else { continue }
                #expect(tier.isMarkedStale(entry.entry), "\(number)")
                readings += 1
            }
        }
        #expect(readings > 0 && tier.statistics.segmentsReclaimed > 0)
        await store.close()
    }

    // MARK: Set-up

    private static let tagged: HeaderFields = [
        "Cache-Control": "max-age=600", "Cache-Tag": "t", "ETag": "\"1\"",
    ]

    private func inMemory() async throws -> Stage {
        try await Stage(Resource(Self.tagged, body: "old", tag: "\"1\""), clock: clock)
    }

    private func open(
        _ files: FaultyFileSystem,
        _ origin: ScriptedOrigin,
        _ durability: BackingStore.Durability
    ) async throws -> Stage {
        try await Stage(origin, clock: clock) {
            $0.backing = .disk(path: "/cache", capacity: .megabytes(16))
            $0.backing.fileSystem = .replaced(files)
            $0.backing.durability = durability
            // Nothing is written in the background.
            $0.backing.flushMilliseconds = 1_000_000
        }
    }

    /// A cache with "old" on disk and in memory.
    private func loaded(
        _ files: FaultyFileSystem,
        _ durability: BackingStore.Durability = .none
    ) async throws -> Stage {
        let resource = Resource(Self.tagged, body: "old", tag: "\"1\"")
        let stage = try await open(
            files,
            ScriptedOrigin { request, _ in resource.answer(request) },
            durability
        )
        #expect(try await stage.get().body == "old")
        try await stage.cache.flush()
        return stage
    }

    private func reopened(_ files: FaultyFileSystem) async throws -> Stage {
        let resource = Resource(Self.tagged, body: "old", tag: "\"1\"")
        let origin = ScriptedOrigin { request, _ in resource.answer(request) }
        return try await open(files, origin, .none)
    }

    private func expectNothingOld(
        in files: FaultyFileSystem,
        _ what: String
    ) async throws {
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: "newest")
        let stage = try await open(files, origin, .none)
        let answer = try await stage.get()
        #expect(answer.body != "old", "\(what)")
        await stage.end()
    }

    private func perform(_ change: Change, on stage: Stage) async throws {
        let request = CacheRequest(url: Stage.url)
        let reload = CachePolicy.reload
        switch change {
        case .unsafeMethod:
            stage.origin.follow { _, _ in .whole(body: "done") }
            #expect(try await stage.get(method: .post).body == "done")
        case .reload, .reloadOfPieces:
            stage.origin.follow { _, _ in
                let fields: HeaderFields = ["Cache-Control": "max-age=600"]
                guard change == .reloadOfPieces else { return .whole(fields: fields, body: "new") }
                let source = ManualBody()
                for piece in ["n", "e", "w"] { source.feed(piece) }
                source.finish()
                return OriginResponse(status: 200, fields: fields, body: source.stream())
            }
            #expect(try await stage.get(policy: reload).body == "new")
        case .revalidatedUnstored:
            stage.origin.follow { _, _ in
                .whole(fields: ["Cache-Control": "no-store"], body: "new")
            }
            let fields: HeaderFields = ["Cache-Control": "no-cache"]
            #expect(try await stage.get(Stage.url, fields).body == "new")
        case .confirmedShorter:
            stage.origin.follow { _, _ in
                OriginResponse(status: 304, fields: ["Cache-Control": "no-cache", "ETag": "\"1\""])
            }
            #expect(try await stage.get(Stage.url, ["Cache-Control": "no-cache"]).body == "old")
        case .replacedByVariants:
            stage.origin.follow { _, _ in
                .whole(fields: ["Cache-Control": "max-age=600", "Vary": "Accept"], body: "new")
            }
            let accept: HeaderFields = ["Accept": "text/plain"]
            #expect(try await stage.get(Stage.url, accept, policy: reload).body == "new")
        case .headThatDiffers:
            stage.origin.follow { _, _ in
                OriginResponse(
                    status: 200,
                    fields: [
                        "Cache-Control": "max-age=600", "Content-Length": "9", "ETag": "\"2\"",
                    ]
                )
            }
            let fields: HeaderFields = ["Cache-Control": "no-cache"]
            #expect(try await stage.get(Stage.url, fields, method: .head).status == 200)
        case .storedByHand:
            let new = CacheResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=600"],
                body: BodyStream(ByteChunk("new")),
                info: CacheInfo(source: .origin)
            )
            #expect(try await stage.cache.store(new, for: request) == .stored)
        default: try await ask(change, of: stage.cache, request)
        }
    }

    private func ask(
        _ change: Change,
        of cache: HTTPCache,
        _ request: CacheRequest
    ) async throws {
        switch change {
        case .removed: #expect(try await cache.remove(request))
        case .variantRemoved: #expect(try await cache.removeVariant(request))
        case .purged: try await cache.purge(tag: "t")
        case .purgedAll: try await cache.removeAll()
        case .softByRequest: #expect(try await cache.markStale(request))
        case .variantSoftByRequest: #expect(try await cache.markVariantStale(request))
        default: try await cache.markStale(tagged: "t")
        }
    }
}
