import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// The indexes of variants stay as long as the variants, and where these are.
@Suite struct KeptIndexTests {
    private let folder: Folder

    init() throws { folder = try Folder() }

    private static func origin(_ count: Int = 1) -> ScriptedOrigin {
        let fields: HeaderFields = ["Cache-Control": "max-age=600", "Vary": "Accept-Encoding"]
        return ScriptedOrigin(fields: fields, body: String(repeating: "x", count: count))
    }

    private func stage(
        _ origin: ScriptedOrigin = origin(),
        _ change: (inout HTTPCache.Configuration) -> Void = { _ in }
    ) async throws -> Stage {
        try await Stage(origin) {
            $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(16))
            change(&$0)
        }
    }

    private static func coding(_ name: String) -> HeaderFields { ["Accept-Encoding": name] }

    @Test("the memory may lose an index while the hook decides: it is made again")
    func indexThatTheMemoryHasLostIsMadeAgain() async throws {
        let cache = Mutex<HTTPCache?>(nil)
        let stage = try await stage {
            $0.hooks.willStore = { proposal in
                await cache.withLock { $0 }?.relieveMemoryPressure()
                return proposal
            }
        }
        cache.withLock { $0 = stage.cache }
        for name in ["br", "gzip"] {
            _ = try await stage.get(Stage.url, Self.coding(name))
            try await stage.cache.flush()
        }
        await stage.cache.relieveMemoryPressure()
        for name in ["br", "gzip"] {
            #expect(try await stage.get(Stage.url, Self.coding(name)).source == .fresh, "\(name)")
        }
        cache.withLock { $0 = nil }
        await stage.end()
        let reopened = try await self.stage()
        #expect(try await reopened.holds(Stage.url, Self.coding("br")))
        await reopened.end()
    }

    @Test("a variant that the hook pins pins its index")
    func hookPinsTheIndexToo() async throws {
        let origin = ScriptedOrigin { request, _ in
            var fields: HeaderFields = ["Cache-Control": "max-age=60"]
            if request.url.contains("pinned") { fields["Vary"] = "Accept-Encoding" }
            return .whole(fields: fields, body: "x")
        }
        let stage = try await Stage(origin) {
            $0.memory = .megabytes(1)
            $0.hooks.willStore = { proposal in
                var proposal = proposal
                if proposal.request.url.contains("pinned") { proposal.storageClass = .pinned }
                return proposal
            }
        }
        for number in 0..<5 {
            _ = try await stage.get("http://pinned/\(number)", Self.coding("br"))
        }
        for number in 0..<20_000 { _ = try await stage.get("http://passing/\(number)") }
        for number in 0..<5 {
            #expect(try await stage.holds("http://pinned/\(number)", Self.coding("br")))
        }
        await stage.end()
    }

    /// A class of responses, and the class of the others of the resource.
    @Test(
        "a removal by class takes no index of responses that it does not cover",
        arguments: [StorageClass.pinned, .permanent, .session],
        [StorageClass.pinned, .permanent]
    )
    func removalByClassLeavesIndexesOfOthers(
        removed: StorageClass,
        kept: StorageClass
    ) async throws {
        guard removed != kept else { return }
        let stage = try await stage()
        for (name, storageClass) in [("br", removed), ("gzip", kept)] {
            let policy = CachePolicy(storageClass: storageClass)
            _ = try await stage.get(Stage.url, Self.coding(name), policy: policy)
        }
        try await stage.cache.flush()
        try await stage.cache.removeAll(in: .storageClass(removed))
        await stage.cache.relieveMemoryPressure()
        #expect(try await stage.holds(Stage.url, Self.coding("br")) == false)
        #expect(try await stage.holds(Stage.url, Self.coding("gzip")))
        await stage.end()
        let reopened = try await self.stage()
        #expect(try await reopened.holds(Stage.url, Self.coding("br")) == false)
        #expect(try await reopened.holds(Stage.url, Self.coding("gzip")))
        await reopened.end()
    }

    @Test("an index that forgot its variants leaves none of before behind the memory")
    func olderIndexGoesWithItsVariants() async throws {
        let isPrivate = Mutex(false)
        let stage = try await stage {
            $0.caching.maximumVariants = 2
            $0.hooks.willStore = { proposal in
                isPrivate.withLock { $0 } ? proposal.inMemoryOnly : proposal
            }
        }
        for name in ["br", "gzip"] { _ = try await stage.get(Stage.url, Self.coding(name)) }
        try await stage.cache.flush()
        stage.clock.advance(seconds: 61)
        isPrivate.withLock { $0 = true }
        // One more variant than there may be: all of before are forgotten.
        for name in ["deflate", "br"] { _ = try await stage.get(Stage.url, Self.coding(name)) }
        await stage.cache.relieveMemoryPressure()
        #expect(try await stage.get(Stage.url, Self.coding("br")).source == .origin)
        await stage.end()
    }

    @Test("an index that the memory refuses is in no file either")
    func refusedIndexIsInNoFile() async throws {
        let stage = try await stage {
            $0.memory = MemoryOptions(capacity: .bytes(0))
            $0.hooks.willStore = { $0.inMemoryOnly }
        }
        _ = try await stage.get("http://example.com/?token=marker-of-a-secret")
        try await stage.cache.flush()
        await stage.end()
        #expect(try folder.contains("marker-of-a-secret") == false)
    }
}
