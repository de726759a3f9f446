import CacheEngine
import CacheTestSupport
import Testing

/// A22: custom stores, and the kit that checks them.
@Suite struct StoreConformanceTests {
    @Test("A22: a simple store in memory conforms")
    func simpleStoreConforms() async {
        let kit = StoreConformance(reopen: { $0 }) { RecordingStore() }
        #expect(await kit.run() == [])
    }

    /// Faults of a store that the kit must find.
    enum Fault: String, CaseIterable, Sendable {
        case forgetsEverything, ignoresRemoval, ignoresScopes, keepsOldOnReplace
        case truncatesBodies, dropsTags, keepsAfterRefusal, miscounts, mixesKeys, throwing
    }

    @Test("A22: the kit finds what a faulty store does wrong", arguments: Fault.allCases)
    func faultyStoresAreFound(fault: Fault) async {
        let kit = StoreConformance(seeds: 0..<8, reopen: { $0 }) { FaultyStore(fault) }
        #expect(await kit.run().isEmpty == false)
    }

    @Test("A22: entries of a store that outlives the cache are found by the next one")
    func storeOutlivesTheCache() async throws {
        let store = RecordingStore()
        let clock = TestClock()
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Vary": "Accept"])
        for (round, source) in [CacheInfo.Source.origin, .fresh, .fresh].enumerated() {
            let stage = try await Stage(origin, clock: clock) { $0.backing = .custom(store) }
            for type in ["text/plain", "text/html"] {
                let answer = try await stage.get(Stage.url, ["Accept": type])
                #expect(answer.source == source)
                #expect(answer.info.tier == (round == 0 ? nil : .disk))
            }
            await stage.end()
        }
        #expect(origin.count == 2)
    }

    @Test("A22: entries pass through bytes unchanged, and nothing else is taken for one")
    func entriesPassThroughBytes() async throws {
        let store = RecordingStore()
        let stage = try await Stage { $0.backing = .custom(store) }
        _ = try await stage.get()
        try await stage.cache.flush()
        let entry = try #require(await store.any)
        let bytes = try #require(entry.serialized)
        #expect(StoredEntry(serialized: bytes)?.serialized == bytes)
        for count in 0..<bytes.count {
            #expect(StoredEntry(serialized: .init(bytes[..<count])) == nil)
        }
        #expect(StoredEntry(serialized: bytes + [0]) == nil)
        await stage.end()
    }

    @Test("A22: a store that fails costs a miss, never a response")
    func failingStoreCostsAMiss() async throws {
        let stage = try await Stage { $0.backing = .custom(FaultyStore(.throwing)) }
        #expect(try await stage.get().body == "hello")
        await stage.cache.relieveMemoryPressure()
        #expect(try await stage.get().body == "hello")
        #expect(stage.origin.count == 2)
        #expect(await stage.cache.statistics.storageErrors > 0)
        await stage.end()
    }
}

/// A store with one fault.
actor FaultyStore: CacheStore {
    private let fault: StoreConformanceTests.Fault
    private let inner = RecordingStore()
    private var last: StoredEntry?

    init(_ fault: StoreConformanceTests.Fault) { self.fault = fault }

    func entry(for key: StoreKey) async throws -> StoredEntry? {
        switch fault {
        case .throwing: throw CacheError(.storageFailed, detail: "On purpose")
        case .forgetsEverything: return nil
        case .mixesKeys: return last
        default: return await inner.entry(for: key)
        }
    }

    func store(_ entry: StoredEntry) async throws -> StoreOutcome {
        last = entry
        switch fault {
        case .throwing: throw CacheError(.storageFailed, detail: "On purpose")
        case .keepsOldOnReplace where await inner.entry(for: entry.key) != nil: return .stored
        case .truncatesBodies, .dropsTags:
            return await inner.store(entry.damaged(keepingBody: fault == .dropsTags))
        case .keepsAfterRefusal where entry.sizeBytes > 1 << 20: return .refused(.tooLarge)
        default: return await inner.store(entry)
        }
    }

    func remove(_ key: StoreKey) async throws -> Bool {
        if fault == .ignoresRemoval { return true }
        return await inner.remove(key)
    }

    func removeAll(in scope: RemovalScope) async throws -> RemovalCount {
        if fault == .ignoresScopes, scope != .everything { return RemovalCount() }
        return await inner.removeAll(in: scope)
    }

    func usage() async -> StoreUsage {
        var usage = await inner.usage()
        if fault == .miscounts { usage.entries += 1 }
        return usage
    }

    func flush() async throws {}
}
