import CacheTestSupport
import Testing

@testable import CacheEngine

/// Random operations on a tier and on a model.
///
/// The tier may forget entries, but must not invent them or bring back removed ones.
@Suite struct DiskModelTests {
    @Test(arguments: 0..<UInt64(64))
    func killsMayLoseEntriesAndRestoreNone(seed: UInt64) async throws {
        var run = DiskModelRun(seed: seed, durability: .none, endings: [.close, .kill])
        try await run.play(steps: 150)
    }

    @Test(arguments: 0..<UInt64(64))
    func powerCutsLoseNothingAcknowledged(seed: UInt64) async throws {
        var run = DiskModelRun(
            seed: 1_000 + seed,
            durability: .onRemoval,
            endings: [.close, .kill, .powerCut]
        )
        try await run.play(steps: 150)
    }

    @Test(arguments: 0..<UInt64(64))
    func noWrongEntryFromADeviceThatFailsSometimes(seed: UInt64) async throws {
        var plan = FaultyFileSystem.Plan()
        plan.shortRead = 50
        plan.shortWrite = 50
        plan.interrupted = 50
        plan.cold = 300
        plan.readError = 5
        plan.writeError = 20
        plan.synchronizeError = 10
        var run = DiskModelRun(
            seed: 2_000 + seed,
            durability: seed % 2 == 0 ? .none : .onRemoval,
            endings: [.close, .kill],
            plan: plan
        )
        try await run.play(steps: 150)
    }

    @Test(arguments: 0..<UInt64(64))
    func noWrongEntryFromADeviceThatFillsUp(seed: UInt64) async throws {
        var run = DiskModelRun(seed: 3_000 + seed, durability: .none, endings: [.close, .kill])
        run.fillsUp = true
        try await run.play(steps: 150)
    }

    @Test(arguments: 0..<UInt64(64))
    func noInventedEntryFromADeviceThatLies(seed: UInt64) async throws {
        var plan = FaultyFileSystem.Plan()
        plan.flipOnRead = 5
        plan.flipOnWrite = 20
        plan.tornWrite = 20
        plan.misdirectedWrite = 20
        var run = DiskModelRun(
            seed: 4_000 + seed,
            durability: .none,
            endings: [.close, .kill, .powerCut],
            plan: plan
        )
        run.deviceLies = true
        try await run.play(steps: 150)
    }

    /// A power cut without synchronisation may bring back old values, but no wrong ones.
    @Test(arguments: 0..<UInt64(64))
    func noInventedEntryAfterPowerCutsWithoutDurability(seed: UInt64) async throws {
        var run = DiskModelRun(seed: 5_000 + seed, durability: .none, endings: [.powerCut])
        run.deviceLies = true
        try await run.play(steps: 150)
    }
}

/// One seeded run of a tier on a faulty file system, compared with the model.
struct DiskModelRun {
    enum Ending: Hashable { case close, kill, powerCut }

    let seed: UInt64
    let endings: [Ending]
    private(set) var files: FaultyFileSystem
    let store: DiskStore
    let plan: FaultyFileSystem.Plan
    var fillsUp = false
    /// The device loses or changes bytes silently: only invented bytes are a failure.
    var deviceLies = false
    private var random: SeededRandom
    private var model = DiskModel()
    private var version = 0

    private static let keys = 24
    private static let tags = ["a", "b", "c"]

    init(
        seed: UInt64,
        durability: DiskConfiguration.Durability,
        endings: [Ending],
        plan: FaultyFileSystem.Plan = .init()
    ) {
        self.seed = seed
        self.endings = endings
        self.plan = plan
        files = FaultyFileSystem(seed: seed)
        random = SeededRandom(seed: seed ^ 0xD15C)
        store = DiskStore(segments: 6, shards: seed % 3 == 0 ? 2 : 1, volume: .replaced(files))
        store.configuration.durability = durability
        store.configuration.queueBytesMax = 40_000
        store.configuration.batchBytes = 8_000
        store.configuration.entryBytesMax = 60_000
        store.configuration.foreignDirectory = .startEmpty
        // Only the operations write, so that a seed always gives the same run.
        store.configuration.flushMilliseconds = 1_000_000
    }

    mutating func play(steps: Int) async throws {
        try await open()
        for step in 0..<steps {
            try await act()
            if fillsUp, step % 20 == 0 {
                let isFull = random.next() % 2 == 0
                files.plan.capacityBytes = isFull ? files.totalBytes + 10_000 : .max
            }
            if step % 50 == 49 { try await checkAll() }
        }
        try await checkAll()
        await end(.close)
    }

    private mutating func act() async throws {
        let tier = try #require(store.tier)
        let key = Int(random.next() % UInt64(Self.keys))
        switch random.next() % 100 {
        case 0..<45: try storeEntry(key, in: tier)
        case 45..<55:
            tier.enqueueRemoval(try store.storeKey(key).hash)
            model.remove(key)
        case 55..<62:
            model.remove(key)
            do {
                _ = try await tier.remove(store.storeKey(key))
                model.noteDurable(key)
            } catch is CacheError {}
        case 62..<66: try await purge(in: tier)
        case 66..<74:
            do {
                try await tier.flush()
                model.noteDurable()
            } catch is CacheError {}
        case 74..<96: try await check(key)
        default:
            let ending = endings[Int(random.next() % UInt64(endings.count))]
            await end(ending)
            store.now += Int64(random.next() % 300) - 100
            try await open()
        }
    }

    private mutating func storeEntry(_ key: Int, in tier: DiskTier) throws {
        version += 1
        let value = DiskModel.Value(
            version: version,
            tags: Set(Self.tags.filter { _ in random.next() % 4 == 0 }),
            isSession: random.next() % 8 == 0,
            createdSeconds: store.now
        )
        let sizes = [0, 100, 700, 700, 3_000, 3_000, 9_000, 30_000]
        let entry = try store.entry(
            key,
            version: value.version,
            bytes: sizes[Int(random.next() % UInt64(sizes.count))],
            tags: value.tags.sorted(),
            flags: value.isSession ? .session : []
        )
        if tier.enqueue(entry) == .stored { model.store(key, value) } else { model.remove(key) }
    }

    private mutating func purge(in tier: DiskTier) async throws {
        let scopes: [RemovalScope] = [
            .everything, .tag("a"), .tag("b"), .tag("c"), .tag("a"), .storageClass(.session),
            .storedBefore(unixSeconds: store.now - 100), .storedAfter(unixSeconds: store.now),
        ]
        let scope = scopes[Int(random.next() % UInt64(scopes.count))]
        do {
            _ = try await tier.removeAll(in: scope)
            model.purge(scope, isAcknowledged: true)
        } catch is CacheError {
            // Some shards may have purged: the entries in scope may be present or gone.
            return
        }
    }

    private func check(_ key: Int) async throws {
        let version = try await store.version(key)
        let isLegal =
            deviceLies
            ? model.wasEver(version, for: key)
            : model.allows(version, for: key)
        #expect(isLegal, "seed \(seed): key \(key) gave version \(version.map(String.init) ?? "-")")
    }

    private func checkAll() async throws {
        for key in 0..<Self.keys { try await check(key) }
        #if ENGINE_CHECKS
            await store.tier?.checkInvariants()
        #endif
        if let tier = store.tier {
            let usage = await tier.usage()
            #expect(usage.bytes - tier.statistics.queuedBytes <= usage.capacityBytes, "\(seed)")
        }
    }

    private mutating func open() async throws {
        // No faults while the directory opens: failed openings have a test of their own.
        files.plan = .init()
        _ = try await store.openWhenFree()
        files.plan = plan
    }

    private mutating func end(_ ending: Ending) async {
        switch ending {
        case .close:
            files.plan = .init()
            let isWritten = (try? await store.tier?.flush()) != nil
            await store.close()
            if isWritten { model.reopenAfterClose() } else { model.reopenAfterKill() }
        case .kill, .powerCut:
            // A job of this life may still run or be due, such as the retry of a failed device a
            // second later. In the next life's files it would write what a dead process cannot.
            for _ in 0..<2 { _ = await store.tier?.usage() }
            store.tier = nil
            files = files.copy(afterPowerCut: ending == .powerCut, seed: random.next())
            store.volume = .replaced(files)
            model.reopenAfterKill()
        }
    }
}
