import CacheEngine
import CacheTestSupport
import Testing

/// Storage classes and overrides (A12 to A16).
extension DownloadCacheTests {
    @Test("A12, A14: session entries end with the session; clearing by class counts what it took")
    func storageClassesAreClearedApart() async throws {
        let stage = try await Stage { $0.backing = .custom(RecordingStore()) }
        let classes: [StorageClass] = [.permanent, .session, .pinned]
        for (number, storageClass) in classes.enumerated() {
            for copy in 0...number {
                _ = try await stage.get(
                    "http://example.com/\(storageClass)/\(copy)",
                    policy: CachePolicy(storageClass: storageClass)
                )
            }
        }
        let ended = try await stage.cache.endSession()
        #expect(ended.entries == 2)
        #expect(ended.bytes > 0)
        #expect(try await stage.holds("http://example.com/session/0") == false)
        #expect(try await stage.holds("http://example.com/permanent/0"))
        #expect(try await stage.cache.removeAll(in: .storageClass(.pinned)).entries == 3)
        #expect(try await stage.cache.removeAll(in: .storageClass(.permanent)).entries == 1)
        #expect(await stage.cache.statistics.memory.entries == 0)
        await stage.end()
    }

    @Test("A12: the cache may have a storage class for all that names none")
    func storageClassOfTheCache() async throws {
        let stage = try await Stage { $0.caching.storageClass = .session }
        _ = try await stage.get()
        #expect(try await stage.cache.endSession().entries == 1)
        await stage.end()
    }

    @Test("A12: session entries of a store that outlives the cache are gone at the next open")
    func sessionEntriesAreGoneAtTheNextOpen() async throws {
        let store = RecordingStore()
        let first = try await Stage { $0.backing = .custom(store) }
        _ = try await first.get("http://a/", policy: CachePolicy(storageClass: .session))
        _ = try await first.get("http://b/")
        try await first.cache.flush()
        #expect(await store.count == 2)
        await first.end()
        let second = try await Stage { $0.backing = .custom(store) }
        #expect(try await second.holds("http://a/") == false)
        #expect(try await second.holds("http://b/"))
        await second.end()
    }

    @Test("A13: pinned entries are not evicted while they stay under their share")
    func pinnedEntriesAreNotEvicted() async throws {
        let body = String(repeating: "x", count: 20_000)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
        let stage = try await Stage(origin) { $0.memory = .megabytes(1) }
        for number in 0..<5 {
            _ = try await stage.get(
                "http://pinned/\(number)",
                policy: CachePolicy(storageClass: .pinned)
            )
        }
        for number in 0..<300 { _ = try await stage.get("http://passing/\(number)") }
        for number in 0..<5 { #expect(try await stage.holds("http://pinned/\(number)")) }
        #expect(await stage.cache.statistics.memory.entries < 60)
        await stage.end()
    }

    @Test("A13: variants of a removed resource hold no share of the pinned entries")
    func removedVariantsLeaveTheShare() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
        let body = String(repeating: "x", count: 20_000)
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: body)) {
            $0.memory = .megabytes(1)
        }
        let pinned = CachePolicy(storageClass: .pinned)
        for _ in 0..<40 {
            _ = try await stage.get("http://removed/", policy: pinned)
            try await stage.cache.remove(CacheRequest(url: "http://removed/"))
        }
        for number in 0..<5 { _ = try await stage.get("http://pinned/\(number)", policy: pinned) }
        for number in 0..<300 {
            _ = try await stage.get("http://passing/\(number)")
            _ = try await stage.get("http://passing/\(number)")
        }
        for number in 0..<5 { #expect(try await stage.holds("http://pinned/\(number)")) }
        await stage.end()
    }

    @Test("A13: a pinned response that varies is found as long: its index is pinned, too")
    func pinnedVariantsAreFound() async throws {
        let origin = ScriptedOrigin { request, _ in
            var fields: HeaderFields = ["Cache-Control": "max-age=60"]
            guard request.url.contains("pinned") else { return .whole(fields: fields, body: "x") }
            fields["Vary"] = "Accept-Encoding"
            return .whole(fields: fields, body: String(repeating: "x", count: 20_000))
        }
        let stage = try await Stage(origin) { $0.memory = .megabytes(1) }
        let pinned = CachePolicy(storageClass: .pinned)
        // The class of a resource may be named later.
        for policy in [CachePolicy(), pinned] {
            for number in 0..<5 {
                let coding = policy.storageClass == nil ? "gzip" : "br"
                _ = try await stage.get(
                    "http://pinned/\(number)",
                    ["Accept-Encoding": coding],
                    policy: policy
                )
            }
        }
        for number in 0..<20_000 { _ = try await stage.get("http://passing/\(number)") }
        for number in 0..<5 {
            #expect(try await stage.holds("http://pinned/\(number)", ["Accept-Encoding": "br"]))
        }
        try await stage.cache.removeAll(in: .storageClass(.permanent))
        for number in 0..<5 {
            #expect(try await stage.holds("http://pinned/\(number)", ["Accept-Encoding": "br"]))
        }
        await stage.end()
    }

    @Test(
        "a removal by time takes no index of responses that it does not cover",
        arguments: [true, false]
    )
    func removalByTimeLeavesIndexesOfOthers(isOnDisk: Bool) async throws {
        let folder = try Folder()
        let path = folder.path("cache")
        let fields: HeaderFields = ["Cache-Control": "max-age=600", "Vary": "Accept-Encoding"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "x")) {
            if isOnDisk { $0.backing = .disk(path: path, capacity: .megabytes(16)) }
        }
        _ = try await stage.get(Stage.url, ["Accept-Encoding": "br"])
        stage.clock.advance(seconds: 10)
        _ = try await stage.get(Stage.url, ["Accept-Encoding": "gzip"])
        let middle = Stage.startSeconds + 5
        // The index is younger than the older variant.
        try await stage.cache.removeAll(in: .storedAfter(unixSeconds: middle))
        if isOnDisk { await stage.cache.relieveMemoryPressure() }
        #expect(try await stage.holds(Stage.url, ["Accept-Encoding": "br"]))
        #expect(try await stage.holds(Stage.url, ["Accept-Encoding": "gzip"]) == false)
        await stage.end()
    }

    @Test("A15: the origin's refusals can be overridden, and only by that name")
    func originDirectivesCanBeOverridden() async throws {
        for directives in ["no-store", "no-cache", "no-store, no-cache", "max-age=0"] {
            let stage = try await Stage(ScriptedOrigin(fields: ["Cache-Control": directives]))
            let policy = CachePolicy(
                lifetimeOverride: .seconds(100),
                respectsOriginDirectives: false
            )
            _ = try await stage.get(policy: policy)
            let hit = try await stage.get(policy: policy)
            #expect(hit.source == .fresh, "\(directives)")
            #expect(hit.fields["Cache-Control"] == directives)
            stage.clock.advance(seconds: 100)
            #expect(try await stage.get(policy: policy).source == .origin, "\(directives)")
            await stage.end()

            let obeying = try await Stage(ScriptedOrigin(fields: ["Cache-Control": directives]))
            let half = CachePolicy(lifetimeOverride: .seconds(100))
            _ = try await obeying.get(policy: half)
            let isRefused = directives.contains("no-store")
            #expect(try await obeying.holds() == !isRefused, "\(directives)")
            await obeying.end()
        }
    }

    @Test(
        "A16: a lifetime of one's own applies at store and at 304, and the fields stay as they are"
    )
    func ownLifetimeApplies() async throws {
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60"]))
        let policy = CachePolicy(lifetimeOverride: .seconds(500))
        for round in 0..<3 {
            #expect(
                try await stage.get(policy: policy).source == (round == 0 ? .origin : .revalidated)
            )
            stage.clock.advance(seconds: 499)
            let hit = try await stage.get(policy: policy)
            #expect(hit.source == .fresh)
            #expect(hit.fields["Cache-Control"] == "max-age=60")
            stage.clock.advance(seconds: 1)
        }
        await stage.end()
    }

    @Test("A16: lifetimes can be clamped", arguments: [(10, 100), (150, 150), (900, 300)])
    func lifetimesCanBeClamped(given: Int, effective: Int) async throws {
        let stage = try await Stage(ScriptedOrigin(fields: ["Cache-Control": "max-age=\(given)"])) {
            $0.caching.minimumLifetime = .seconds(100)
            $0.caching.maximumLifetime = .seconds(300)
        }
        _ = try await stage.get()
        #expect(try await stage.get().info.remainingSeconds == effective)
        await stage.end()
    }
}
