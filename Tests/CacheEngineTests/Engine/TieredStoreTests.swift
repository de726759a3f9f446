import CacheTestSupport
import Dispatch
import Foundation
import Synchronization
import Testing

@testable import CacheEngine

/// Memory and disk as one storage: operations take effect in the same order in both.
@Suite struct TieredStoreTests {
    /// A point at which one thread is held until `release`.
    final class Hold: Sendable {
        /// The caller of `release` may itself wait for a lock that the held thread has.
        private static let millisecondsMax = 200
        private let caught = DispatchSemaphore(value: 0)
        private let letGo = DispatchSemaphore(value: 0)

        func hold() {
            caught.signal()
            _ = letGo.wait(timeout: .now() + .milliseconds(Self.millisecondsMax))
        }

        func waitUntilHeld() async { await PlainThread.run { self.caught.wait() } }
        func release() { letGo.signal() }
    }

    /// A memory in front of `disk`, and a key for the tests.
    static func tiers(on disk: DiskTier) -> (TieredStore, RequestKey) {
        let tiers = TieredStore(
            memory: MemoryTier(MemoryConfiguration(capacityBytes: 16 << 20)),
            backing: disk,
            hasher: disk.hasher,
            clock: FixedClock(nowSeconds: 1_000_000),
            recorder: Recorder(onEvent: nil)
        )
        let bytes: [UInt8] = [1, 2, 3]
        let hash = bytes.withUnsafeBytes { disk.hasher.hash($0) }
        return (tiers, RequestKey(bytes: bytes, hash: hash))
    }

    /// The store was permitted before the removal began and reaches the disk after it.
    ///
    /// The removed entry must not come back from disk.
    @Test(arguments: [RemovalScope.tag("news"), .everything, .storedBefore(unixSeconds: 2_000_000)])
    func removalWaitsForAStoreBetweenMemoryAndDisk(scope: RemovalScope) async throws {
        let folder = TemporaryFolder()
        let disk = try await DiskTier.open(
            DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        )
        let (tiers, key) = Self.tiers(on: disk)
        let blueprint = EntryBlueprint(
            key: key,
            metadata: [0],
            tags: try #require(TagList(["news"])),
            createdSeconds: 1_000_000
        )
        let entry = blueprint.makeEntry(body: [ByteChunk([4, 5, 6])], sequence: 0)
        let permitted = Hold()
        async let outcome = PlainThread.run {
            tiers.store(entry, since: tiers.ledger.ticket()) {
                permitted.hold()
                return true
            }
        }
        await permitted.waitUntilHeld()
        _ = try await tiers.removeAll(in: scope)
        permitted.release()
        _ = await outcome
        #expect(await tiers.entry(key) == nil)
        await tiers.backing.close()
    }

    /// A custom store whose removals wait for a signal.
    private struct HeldStore: CacheStore {
        let inner = InMemoryStore()
        let gate: DispatchSemaphore

        func entry(for key: StoreKey) async throws -> StoredEntry? {
            try await inner.entry(for: key)
        }
        func store(_ entry: StoredEntry) async throws -> StoreOutcome {
            try await inner.store(entry)
        }
        func remove(_ key: StoreKey) async throws -> Bool { try await inner.remove(key) }
        func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
            await PlainThread.run { gate.wait() }
            return try await inner.removeAll(in: scope)
        }
        func usage() async -> StoreUsage { await inner.usage() }
        func flush() async throws {}
    }

    /// The device of the disk, or the custom store, hangs: a purged entry must not be served meanwhile.
    @Test(arguments: [RemovalScope.tag("news"), .everything], [true, false])
    func memoryForgetsBeforeTheDeviceConfirms(scope: RemovalScope, isDisk: Bool) async throws {
        let folder = TemporaryFolder()
        let pool = IOPool(threadCount: 1)
        var configuration = DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        configuration.pool = pool
        let disk = try await DiskTier.open(configuration)
        let gate = DispatchSemaphore(value: 0)
        let (onDisk, key) = Self.tiers(on: disk)
        let tiers: TieredStore
        if isDisk {
            try await pool.hold(until: gate)
            tiers = onDisk
        } else {
            let recorder = Recorder(onEvent: nil)
            let store = QueuedStore(
                HeldStore(gate: gate),
                supervisor: Supervisor(),
                recorder: recorder
            )
            tiers = TieredStore(
                memory: onDisk.memory,
                backing: store,
                hasher: disk.hasher,
                clock: FixedClock(nowSeconds: 1_000_000),
                recorder: recorder
            )
        }
        let blueprint = EntryBlueprint(
            key: key,
            metadata: [0],
            tags: try #require(TagList(["news"])),
            createdSeconds: 1_000_000
        )
        let entry = blueprint.makeEntry(body: [ByteChunk("old")], sequence: 0)
        #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        let isOver = Mutex(false)
        let removal = Task {
            defer { isOver.withLock { $0 = true } }
            return try await tiers.removeAll(in: scope)
        }
        #expect(await eventually(seconds: 10) { tiers.peek(key) == nil })
        #expect(!isOver.withLock { $0 })
        gate.signal()
        #expect(try await removal.value.entries == 1)
        await disk.close()
    }

    /// The device hangs while a removal waits for it: later responses are stored all the same.
    @Test(arguments: ["removal of a tag", "removal of all", "mark of a tag", "mark of all"])
    func memoryStoresWhileTheDeviceConfirms(_ operation: String) async throws {
        let folder = TemporaryFolder()
        let pool = IOPool(threadCount: 1)
        var configuration = DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        configuration.pool = pool
        let disk = try await DiskTier.open(configuration)
        let (tiers, key) = Self.tiers(on: disk)
        let gate = DispatchSemaphore(value: 0)
        try await pool.hold(until: gate)
        let blueprint = EntryBlueprint(
            key: key,
            metadata: [0],
            tags: try #require(TagList(["news"])),
            createdSeconds: 1_000_000
        )
        let before = tiers.ledger.ticket()
        let holds = Race<Void>()
        let work = Task {
            let whenDone = { holds.finish(.success(())) }
            switch operation {
            case "removal of a tag":
                _ = try await tiers.removeAll(in: .tag("news"), whenForgotten: whenDone)
            case "removal of all":
                _ = try await tiers.removeAll(in: .everything, whenForgotten: whenDone)
            case "mark of a tag": try await tiers.markStale("news", whenMarked: whenDone)
            default: try await tiers.markEverythingStale(whenMarked: whenDone)
            }
        }
        try await holds.result()
        let entry = tiers.makeEntry(blueprint, body: [ByteChunk("new")])
        #expect(tiers.store(entry, since: before) == .refused(.removedMeanwhile))
        #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        #expect(!tiers.isMarkedStale(entry))
        gate.signal()
        try await work.value
        #expect(tiers.peek(key) != nil)
        #expect(disk.currentToken(key.hash) != nil)
        await disk.close()
    }

    @Test("a large body is copied whole, by the pool of the disk or without one")
    func largeBodyIsCopiedWhole() async throws {
        let folder = TemporaryFolder()
        let disk = try await DiskTier.open(
            DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        )
        let (onDisk, key) = Self.tiers(on: disk)
        let inMemory = TieredStore(
            memory: MemoryTier(MemoryConfiguration(capacityBytes: 16 << 20)),
            backing: NoBackingTier(),
            hasher: disk.hasher,
            clock: FixedClock(nowSeconds: 1_000_000),
            recorder: Recorder(onEvent: nil)
        )
        let blueprint = EntryBlueprint(key: key, metadata: [7], createdSeconds: 1_000_000)
        let pieces = (1...3 as ClosedRange<UInt8>).map { number in
            ByteChunk([UInt8](repeating: number, count: 500_000))
        }
        for tiers in [onDisk, inMemory] {
            let entry = await tiers.makeEntry(blueprint, gathered: pieces)
            #expect(entry.body == ByteChunk(joining: pieces))
            #expect(entry.head.hash == key.hash)
            let renewed = await tiers.renewed(StoredEntry(entry), as: blueprint)
            #expect(renewed.entry.storage !== entry.storage)
            #expect(renewed.entry.isCopy(of: entry))
        }
        await disk.close()
    }

    @Test(
        "what is confirmed late does not take the place of what was stored meanwhile, on disk alone"
    )
    func lateConfirmationDoesNotReplaceANewerEntry() async throws {
        let folder = TemporaryFolder()
        let disk = try await DiskTier.open(
            DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        )
        let (tiers, key) = Self.tiers(on: disk)
        func entry(_ metadata: UInt8, _ body: String) -> Entry {
            EntryBlueprint(key: key, metadata: [metadata], createdSeconds: 1_000_000)
                .makeEntry(body: [ByteChunk(body)], sequence: 0)
        }
        func put(_ entry: Entry) {
            #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        }
        /// Removes the entry from memory, as an eviction does.
        func forget() {
            _ = key.bytes.withUnsafeBytes { tiers.memory.remove(key.hash, key: $0) }
        }
        func isStored(_ metadata: UInt8, _ body: String) async -> Bool {
            guard let (found, _) = await tiers.entry(key) else { return false }
            return found.entry.withMetadata { $0.elementsEqual([metadata]) }
                && found.entry.body.text == body
        }
        let missesBefore = disk.statistics.misses
        #expect(tiers.noteCertainMiss(key))
        #expect(disk.statistics.misses == missesBefore + 1)
        put(entry(1, "old"))
        #expect(!tiers.noteCertainMiss(key))
        forget()
        #expect(!tiers.noteCertainMiss(key), "It still waits to be written, or is on disk")
        let old = try #require(await tiers.entry(key)).0
        forget()
        // The entry is still on disk, so it is confirmed.
        let ticket = tiers.ledger.ticket()
        await tiers.replace(old, by: StoredEntry(entry(2, "old")), since: ticket)
        #expect(await isStored(2, "old"))
        forget()
        // A newer entry has taken its place and must stay.
        put(entry(3, "new"))
        forget()
        await tiers.replace(old, by: StoredEntry(entry(4, "old")), since: ticket)
        #expect(await isStored(3, "new"))
        tiers.removeAtOnce(key)
        #expect(tiers.noteCertainMiss(key))
        await tiers.backing.close()
    }

    @Test("a large body that may not be stored leaves what is in memory")
    func refusedLargeBodyRemovesNothing() async throws {
        let folder = TemporaryFolder()
        let disk = try await DiskTier.open(
            DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        )
        let (tiers, key) = Self.tiers(on: disk)
        let blueprint = EntryBlueprint(key: key, metadata: [0], createdSeconds: 1_000_000)
        let ticket = tiers.ledger.ticket()
        let writer = try await disk.beginBody(for: key.hash, expectedBytes: nil)
        try await writer.append(ByteChunk("older"))
        let older = blueprint.makeEntry(body: [], sequence: 0)
        tiers.removeAtOnce(key)
        let newer = blueprint.makeEntry(body: [ByteChunk("newer")], sequence: 0)
        #expect(tiers.store(newer, since: tiers.ledger.ticket()) == .stored)
        let body = try await writer.finish()
        let outcome = tiers.store(older, body: body, since: ticket)
        #expect(outcome == .refused(.removedMeanwhile))
        #expect(tiers.peek(key)?.body.text == "newer")
        await tiers.backing.close()
    }

    @Test("a read of the disk does not bring back into memory what was replaced meanwhile")
    func diskReadDoesNotRestoreAReplacedEntry() async throws {
        let folder = TemporaryFolder()
        let disk = try await DiskTier.open(
            DiskConfiguration(directory: folder.path, capacityBytes: 64 << 20)
        )
        let (tiers, key) = Self.tiers(on: disk)
        func put(_ body: String) {
            let blueprint = EntryBlueprint(key: key, metadata: [0], createdSeconds: 1_000_000)
            let entry = blueprint.makeEntry(body: [ByteChunk(body)], sequence: 0)
            #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
            // Removes the entry from memory, as an eviction does.
            _ = key.bytes.withUnsafeBytes { tiers.memory.remove(key.hash, key: $0) }
        }
        put("old")
        // The two steps of a look-up behind the memory, and a store between them.
        let ticket = tiers.ledger.ticket()
        let finding = await tiers.backing.find(key, withinSeconds: nil, mayRefuse: false)
        guard case .entry(let found) = finding else {
            Issue.record("the disk has nothing: \(finding)")
            return
        }
        #expect(found.entry.entry.body.text == "old")
        put("new")
        tiers.use(found, since: ticket)
        #expect(tiers.peek(key) == nil)
        #expect(await tiers.entry(key)?.0.entry.body.text == "new")
        // The entry has not been replaced since, so it is promoted.
        #expect(tiers.peek(key)?.body.text == "new")
        await tiers.backing.close()
    }

    /// A custom store that can hold a read after it has found the entry.
    private actor SlowStore: CacheStore {
        private var entries: [StoreKey: StoredEntry] = [:]
        private var isHolding = false
        private var held: UnsafeContinuation<Void, Never>?

        func holdNextRead() { isHolding = true }
        var isHeld: Bool { held != nil }
        func release() { held.take()?.resume() }

        func entry(for key: StoreKey) async -> StoredEntry? {
            let found = entries[key]
            if isHolding {
                isHolding = false
                await withUnsafeContinuation { held = $0 }
            }
            return found
        }

        func store(_ entry: StoredEntry) -> StoreOutcome {
            entries[entry.key] = entry
            return .stored
        }

        func remove(_ key: StoreKey) -> Bool { entries.removeValue(forKey: key) != nil }
        func removeAll(in scope: RemovalScope) -> RemovalCount { RemovalCount() }
        func usage() -> StoreUsage { StoreUsage() }
        func flush() {}
    }

    @Test("a slow read of a custom store does not bring back what was replaced meanwhile")
    func slowReadDoesNotRestoreAReplacedEntry() async throws {
        let store = SlowStore()
        let (supervisor, recorder) = (Supervisor(), Recorder(onEvent: nil))
        let queue = QueuedStore(store, supervisor: supervisor, recorder: recorder)
        let tiers = TieredStore(
            memory: MemoryTier(MemoryConfiguration(capacityBytes: 16 << 20)),
            backing: queue,
            hasher: .random(),
            clock: FixedClock(nowSeconds: 1_000_000),
            recorder: recorder
        )
        let bytes: [UInt8] = [1, 2, 3]
        let key = RequestKey(
            bytes: bytes,
            hash: bytes.withUnsafeBytes { tiers.hasher.hash($0) }
        )
        func put(_ body: String) {
            let blueprint = EntryBlueprint(key: key, metadata: [0], createdSeconds: 1_000_000)
            let entry = blueprint.makeEntry(body: [ByteChunk(body)], sequence: 0)
            #expect(tiers.store(entry, since: tiers.ledger.ticket()) == .stored)
        }
        /// Removes the entry from memory, as an eviction does.
        func forget() {
            _ = key.bytes.withUnsafeBytes { tiers.memory.remove(key.hash, key: $0) }
        }
        put("old")
        forget()
        await tiers.backing.drained()
        await store.holdNextRead()
        async let read = tiers.entry(key)
        #expect(await eventually { await store.isHeld })
        put("new")
        forget()
        await store.release()
        _ = await read
        #expect(tiers.peek(key) == nil)
        #expect(await tiers.entry(key)?.0.entry.body.text == "new")
        // The entry has not been replaced since, so it is promoted.
        #expect(tiers.peek(key)?.body.text == "new")
        await tiers.backing.close()
        await supervisor.shutDown()
    }
}
