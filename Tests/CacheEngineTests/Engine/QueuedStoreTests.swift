import CacheTestSupport
import Synchronization
import Testing

@testable import CacheEngine

/// The queue in front of a custom store.
@Suite struct QueuedStoreTests {
    static func entry(_ key: String, _ body: String) -> StoredEntry {
        let bytes = [UInt8](key.utf8)
        let hasher = KeyHasher(seed: KeyHash(placement: 1, identity: 2))
        let hash = bytes.withUnsafeBytes { hasher.hash($0) }
        let blueprint = EntryBlueprint(
            key: RequestKey(bytes: bytes, hash: hash),
            metadata: [],
            createdSeconds: 0
        )
        return StoredEntry(blueprint.makeEntry(body: [ByteChunk(body)], sequence: 0))
    }

    @Test("what is queued is already readable, and already removed")
    func queuedOperationsAreSeenAtOnce() async {
        let store = GatedStore()
        let supervisor = Supervisor()
        let queue = QueuedStore(store, supervisor: supervisor, recorder: Recorder(onEvent: nil))
        let entry = Self.entry("k", "one")
        #expect(queue.enqueue(entry) == .stored)
        #expect(await queue.entry(for: entry.key)?.entry.body.text == "one")
        #expect(queue.enqueue(Self.entry("k", "two")) == .stored)
        #expect(await queue.entry(for: entry.key)?.entry.body.text == "two")
        queue.enqueueRemoval(entry.key)
        #expect(await queue.entry(for: entry.key) == nil)
        await store.open()
        await queue.drained()
        #expect(await queue.entry(for: entry.key) == nil)
        // One store may have been under way; of the queued operations only the last was carried
        // out.
        let possible = [["remove k"], ["store one", "remove k"], ["store two", "remove k"]]
        #expect(possible.contains(await store.log))
        await supervisor.shutDown()
    }

    @Test("who waits for the queue does not wait for other work, nor for what comes later")
    func drainingWaitsForTheQueueAlone() async {
        let store = GatedStore()
        let supervisor = Supervisor()
        let queue = QueuedStore(store, supervisor: supervisor, recorder: Recorder(onEvent: nil))
        let (never, end) = AsyncStream<Void>.makeStream()
        _ = supervisor.start { for await _ in never {} }
        #expect(queue.enqueue(Self.entry("k", "one")) == .stored)
        await store.open()
        await queue.drained()
        #expect(await store.log == ["store one"])
        end.finish()
        await supervisor.shutDown()
    }

    @Test("a queue that is full refuses, and removes what was there")
    func fullQueueRefuses() async {
        let store = GatedStore()
        let supervisor = Supervisor()
        let queue = QueuedStore(store, supervisor: supervisor, recorder: Recorder(onEvent: nil))
        let large = String(repeating: "x", count: 20 << 20)
        #expect(queue.enqueue(Self.entry("old", "old")) == .stored)
        for number in 0..<3 { #expect(queue.enqueue(Self.entry("k\(number)", large)) == .stored) }
        #expect(queue.enqueue(Self.entry("old", large)) == .refused(.queueFull))
        #expect(await queue.entry(for: Self.entry("old", "").key) == nil)
        await store.open()
        await queue.drained()
        #expect(await queue.entry(for: Self.entry("old", "").key) == nil)
        #expect(queue.enqueue(Self.entry("old", large)) == .stored, "There is room again")
        await queue.drained()
        await supervisor.shutDown()
    }

    @Test("random operations end as they were given", arguments: 0..<64)
    func orderIsKept(seed: UInt64) async {
        var random = SeededRandom(seed: seed)
        let store = GatedStore()
        await store.open()
        let supervisor = Supervisor()
        // Its time stands still: no call of the store ends late.
        let queue = QueuedStore(
            store,
            clock: TestClock(),
            supervisor: supervisor,
            recorder: Recorder(onEvent: nil)
        )
        var latest: [String: String] = [:]
        for step in 0..<100 {
            let key = "k\(Int.random(in: 0..<5, using: &random))"
            switch UInt8.random(in: 0..<4, using: &random) {
            case 0, 1:
                latest[key] = "\(step)"
                _ = queue.enqueue(Self.entry(key, "\(step)"))
            case 2:
                latest[key] = nil
                queue.enqueueRemoval(Self.entry(key, "").key)
            default:
                let found = await queue.entry(for: Self.entry(key, "").key)
                #expect(found?.entry.body.text == latest[key])
            }
        }
        await queue.drained()
        for key in (0..<5).map({ "k\($0)" }) {
            let found = await queue.entry(for: Self.entry(key, "").key)
            #expect(found?.entry.body.text == latest[key])
        }
        await supervisor.shutDown()
    }
}

/// A store whose calls wait until it is opened.
private actor GatedStore: CacheStore {
    private var entries: [StoreKey: StoredEntry] = [:]
    private var isOpen = false
    private var waiting: [UnsafeContinuation<Void, Never>] = []
    private(set) var log: [String] = []

    func open() {
        isOpen = true
        for continuation in waiting { continuation.resume() }
        waiting = []
    }

    private func pass() async {
        guard !isOpen else { return }
        await withUnsafeContinuation { waiting.append($0) }
    }

    func entry(for key: StoreKey) -> StoredEntry? { entries[key] }

    func store(_ entry: StoredEntry) async -> StoreOutcome {
        await pass()
        entries[entry.key] = entry
        log.append("store \(entry.entry.body.text.prefix(8))")
        return .stored
    }

    func remove(_ key: StoreKey) async -> Bool {
        await pass()
        log.append("remove \(String(decoding: key.bytes, as: UTF8.self))")
        return entries.removeValue(forKey: key) != nil
    }

    func removeAll(in scope: RemovalScope) -> RemovalCount { RemovalCount() }
    func usage() -> StoreUsage { StoreUsage() }
    func flush() {}
}

extension QueuedStore {
    /// Accepts an entry and starts its operation.
    fileprivate func enqueue(_ entry: StoredEntry) -> StoreOutcome {
        defer { startWork() }
        return accept(entry)
    }

    /// Accepts a removal and starts it.
    fileprivate func enqueueRemoval(_ key: StoreKey) {
        queueRemoval(of: key)
        startWork()
    }
}
