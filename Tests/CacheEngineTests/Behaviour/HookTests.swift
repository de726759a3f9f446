import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// K1 to K6: storing by hand, the will-store hook, and user info of entries.
@Suite struct HookTests {
    struct Failure: Error {}

    /// Counts the calls of a hook and changes each proposal with a closure.
    final class Hook: Sendable {
        let calls = Mutex(0)
        var count: Int { calls.withLock { $0 } }

        func install(
            in configuration: inout HTTPCache.Configuration,
            _ decide: @escaping @Sendable (StoreProposal) async throws -> StoreProposal?
        ) {
            configuration.hooks.willStore = { [self] proposal in
                calls.withLock { $0 += 1 }
                return try await decide(proposal)
            }
        }
    }

    // MARK: Memory-only entries (K1)

    @Test("K1: memory-only bytes never reach the store behind, and end what was there")
    func memoryOnlyStaysInMemory() async throws {
        let store = RecordingStore()
        let stage = try await Stage { $0.backing = .custom(store) }
        let request = CacheRequest(url: Stage.url)
        var options = HTTPCache.ManualStoreOptions()
        let response = CacheResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60"],
            body: BodyStream(ByteChunk("everywhere"))
        )
        #expect(try await stage.cache.store(response, for: request, options: options) == .stored)
        try await stage.cache.flush()
        #expect(await store.holds("everywhere"))

        options.place = .memoryOnly
        let secret = CacheResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60"],
            body: BodyStream(ByteChunk("secret"))
        )
        #expect(try await stage.cache.store(secret, for: request, options: options) == .stored)
        try await stage.cache.flush()
        #expect(try await stage.get().body == "secret")
        #expect(await store.everHeld("secret") == false)
        #expect(await store.count == 0, "The copy of before is gone")

        await stage.cache.relieveMemoryPressure()
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("K1: what a policy does not allow is stored nowhere")
    func notAllowedIsStoredNowhere() async throws {
        let store = RecordingStore()
        let stage = try await Stage { $0.backing = .custom(store) }
        _ = try await stage.get(policy: CachePolicy(writes: false))
        try await stage.cache.flush()
        #expect(await store.count == 0)
        #expect(await stage.cache.statistics.memory.entries == 0)
        await stage.end()
    }

    // MARK: Will-store hook (K2 to K4)

    @Test("K2: the hook is called once for each storable response, not on hits or 304s")
    func hookIsCalledOnceAStorableAnswer() async throws {
        let hook = Hook()
        let stage = try await Stage(Resource()) { hook.install(in: &$0) { $0 } }
        _ = try await stage.get()
        #expect(hook.count == 1)
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get().source == .revalidated)
        #expect(hook.count == 1)
        _ = try await stage.get(policy: .reload)
        #expect(hook.count == 2)
        stage.origin.follow { _, _ in .whole(fields: ["Cache-Control": "no-store"]) }
        _ = try await stage.get("http://example.com/other")
        #expect(hook.count == 2)
        await stage.end()
    }

    @Test("K2: the hook cannot change how the body is framed, nor its age")
    func hookDoesNotFrame() async throws {
        let hook = Hook()
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60", "Age": "3"])) {
            hook.install(in: &$0) { proposal in
                var proposal = proposal
                for (name, value) in [
                    ("Content-Length", "99"), ("Content-Range", "bytes 0-2/9"), ("Age", "7"),
                    ("Transfer-Encoding", "chunked"), ("Connection", "x"), ("Trailer", "x"),
                    ("X-Own", "yes"),
                ] { proposal.fields[name] = value }
                return proposal
            }
        }
        _ = try await stage.get()
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.body == "one")
        #expect(hit.fields["X-Own"] == "yes")
        #expect(hit.fields.values("Age") == ["3"])
        #expect(hit.fields.values("Content-Length") == ["3"])
        for name in ["Content-Range", "Transfer-Encoding", "Connection", "Trailer"] {
            #expect(hit.fields[name] == nil, "\(name)")
        }
        await stage.end()
    }

    @Test("K2: nothing is stored before the hook has answered")
    func hookAnswersBeforeTheFirstCommit() async throws {
        let store = RecordingStore()
        let gate = ManualBody()
        let hook = Hook()
        let stage = try await Stage {
            $0.backing = .custom(store)
            hook.install(in: &$0) { proposal in
                _ = try await gate.next()
                return proposal
            }
        }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        for _ in 0..<200 { await Task.yield() }
        #expect(try await stage.holds() == false)
        #expect(await store.count == 0)
        gate.feed("go")
        #expect(try await response.body.collect().text == "hello")
        await stage.cache.waitUntilIdle()
        #expect(try await stage.holds())
        await stage.end()
    }

    @Test("K3: the hook may change what is stored, never what the caller gets")
    func hookChangesWhatIsStored() async throws {
        let hook = Hook()
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60", "X-A": "1"])) {
            hook.install(in: &$0) { proposal in
                var proposal = proposal
                proposal.fields["X-A"] = "2"
                proposal.fields["X-B"] = "new"
                proposal.lifetime = .seconds(600)
                proposal.tags = ["mine"]
                proposal.storageClass = .session
                proposal.userInfo = ByteChunk("note")
                return proposal
            }
        }
        let first = try await stage.get()
        #expect(first.fields["X-A"] == "1")
        #expect(first.fields["X-B"] == nil)
        #expect(first.info.userInfo == nil)
        stage.clock.advance(seconds: 599)
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.fields["X-A"] == "2")
        #expect(hit.fields["X-B"] == "new")
        #expect(hit.info.userInfo?.text == "note")
        #expect(try await stage.cache.removeAll(in: .storageClass(.permanent)).entries == 0)
        #expect(try await stage.cache.purge(tag: "mine").entries == 1)
        await stage.end()
    }

    @Test("K3: the lifetime a hook gave holds after a 304 too")
    func lifetimeOfTheHookSurvivesConfirmation() async throws {
        let hook = Hook()
        let stage = try await Stage(Resource()) {
            hook.install(in: &$0) { proposal in
                var proposal = proposal
                proposal.lifetime = .seconds(600)
                return proposal
            }
        }
        _ = try await stage.get()
        stage.clock.advance(seconds: 601)
        #expect(try await stage.get().source == .revalidated)
        stage.clock.advance(seconds: 599)
        #expect(try await stage.get().source == .fresh)
        #expect(hook.count == 1)
        await stage.end()
    }

    @Test("K3: the entry keeps its Vary, and so is confirmed by one request")
    func hookCannotRemoveVary() async throws {
        let hook = Hook()
        let resource = Resource(["Cache-Control": "max-age=60", "Vary": "Accept-Language"])
        let stage = try await Stage(resource) {
            hook.install(in: &$0) { proposal in
                var proposal = proposal
                proposal.fields.remove("Vary")
                return proposal
            }
        }
        _ = try await stage.get()
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get().source == .revalidated)
        #expect(stage.origin.requests.count == 2)
        await stage.end()
    }

    @Test("K3: the hook may say no, and the reason is counted")
    func hookMayRefuseToStore() async throws {
        let hook = Hook()
        let stage = try await Stage { hook.install(in: &$0) { _ in nil } }
        #expect(try await stage.get().body == "hello")
        #expect(try await stage.holds() == false)
        #expect(await stage.cache.statistics.refusals == [StoreRefusalReason("hook"): 1])
        await stage.end()
    }

    @Test("K4: a hook that throws means not stored, counted, and the body is delivered")
    func throwingHookMeansNotStored() async throws {
        let hook = Hook()
        let stage = try await Stage { hook.install(in: &$0) { _ in throw Failure() } }
        #expect(try await stage.get().body == "hello")
        #expect(try await stage.holds() == false)
        #expect(await stage.cache.statistics.hookFailures == 1)
        await stage.end()
    }

    @Test("K4: a slow hook times out, and the body is delivered")
    func slowHookTimesOut() async throws {
        let never = ManualBody()
        let hook = Hook()
        let stage = try await Stage {
            $0.hooks.maximumWillStoreTime = .seconds(5)
            hook.install(in: &$0) { _ in
                _ = try await never.next()
                return nil
            }
        }
        let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
        #expect(await eventually { hook.count > 0 && stage.clock.sleeperCount >= 2 })
        stage.clock.advance(seconds: 5)
        #expect(try await response.body.collect().text == "hello")
        await stage.cache.waitUntilIdle()
        #expect(try await stage.holds() == false)
        #expect(await stage.cache.statistics.hookFailures == 1)
        await stage.end()
    }

    @Test("K4: a slow hook is not taken for a slow origin")
    func slowHookIsNoSlowOrigin() async throws {
        let never = ManualBody()
        let scene = try await FlightScene {
            $0.originLimits.maximumIdleTime = .seconds(2)
            $0.hooks.maximumWillStoreTime = .seconds(5)
            $0.hooks.willStore = { _ in
                _ = try await never.next()
                return nil
            }
        }
        let caller = try #require(await scene.crowd(1).first)
        let body = try await scene.begin(0)
        await scene.world.advance(seconds: 6)
        await body.feed("hello", scene.world)
        await body.finish(scene.world)
        #expect(caller.isComplete && caller.text == "hello")
        let statistics = await scene.world.statistics
        #expect(statistics.hookFailures == 1)
        #expect(statistics.timeouts == 0 && statistics.originFailures == 0)
        await scene.close()
    }

    // MARK: User info and cached date (K5, K6)

    @Test("K5: user info comes back with every hit, and survives a 304 and a restart")
    func userInfoIsGivenBack() async throws {
        let store = RecordingStore()
        let resource = Resource()
        let clock = TestClock()
        let stage = try await Stage(resource, clock: clock) { $0.backing = .custom(store) }
        var options = HTTPCache.ManualStoreOptions()
        options.userInfo = ByteChunk([0, 255, 10])
        let response = CacheResponse(
            status: 200,
            fields: ["Cache-Control": "max-age=60", "ETag": "\"1\""],
            body: BodyStream(ByteChunk("one"))
        )
        try await stage.cache.store(
            response,
            for: CacheRequest(url: Stage.url),
            options: options
        )
        #expect(try await stage.get().info.userInfo?.array == [0, 255, 10])
        clock.advance(seconds: 61)
        let confirmed = try await stage.get()
        #expect(confirmed.source == .revalidated)
        #expect(confirmed.info.userInfo?.array == [0, 255, 10])
        #expect(try await stage.get().info.userInfo?.array == [0, 255, 10])
        try await stage.cache.flush()
        await stage.end()

        let reopened = try await Stage(resource, clock: clock) { $0.backing = .custom(store) }
        let hit = try await reopened.get()
        #expect(hit.source == .fresh)
        #expect(hit.info.tier == .disk)
        #expect(hit.info.userInfo?.array == [0, 255, 10])
        await reopened.end()
    }

    @Test("K6: the cached date is built in")
    func cachedDateIsBuiltIn() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        stage.clock.advance(seconds: 30)
        #expect(try await stage.get().info.storedAtSeconds == Stage.startSeconds)
        await stage.end()
    }

    @Test("K6: keeping HTTPS in memory only is one line")
    func securedAnswersInMemoryOnly() async throws {
        let store = RecordingStore()
        let hook = Hook()
        let stage = try await Stage {
            $0.backing = .custom(store)
            hook.install(in: &$0) { $0.request.url.hasPrefix("https:") ? $0.inMemoryOnly : $0 }
        }
        _ = try await stage.get("https://example.com/a")
        try await stage.cache.flush()
        #expect(await store.count == 0)
        #expect(try await stage.get("https://example.com/a").source == .fresh)
        _ = try await stage.get("http://example.com/a")
        try await stage.cache.flush()
        #expect(await store.count == 1)
        await stage.end()
    }

    @Test("K6: no index of a response in memory only, or of none, leaves the memory")
    func indexStaysInMemoryWithItsVariants() async throws {
        let store = RecordingStore()
        let hook = Hook()
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "x")) {
            $0.backing = .custom(store)
            hook.install(in: &$0) {
                if $0.request.url.hasSuffix("refused") { return nil }
                return $0.request.url.hasPrefix("https:") ? $0.inMemoryOnly : $0
            }
        }
        _ = try await stage.get("https://example.com/a", ["Accept-Encoding": "br"])
        _ = try await stage.get("http://example.com/refused")
        try await stage.cache.flush()
        #expect(await store.count == 0)
        #expect(
            try await stage.get("https://example.com/a", ["Accept-Encoding": "br"]).source
                == .fresh
        )
        // The index and two variants.
        for coding in ["br", "gzip"] {
            _ = try await stage.get("http://example.com/a", ["Accept-Encoding": coding])
        }
        try await stage.cache.flush()
        #expect(await store.count == 3)
        await stage.cache.relieveMemoryPressure()
        for coding in ["br", "gzip"] {
            let found = try await stage.get("http://example.com/a", ["Accept-Encoding": coding])
            #expect(found.source == .fresh && found.info.tier == .disk)
        }
        await stage.end()
    }

    @Test("an index that no memory holds is written at once: its variants are found")
    func indexIsWrittenWhereTheMemoryHoldsNothing() async throws {
        let hook = Hook()
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": "Accept-Encoding"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "x")) {
            $0.memory = MemoryOptions(capacity: .bytes(0))
            $0.backing = .custom(RecordingStore())
            hook.install(in: &$0) { $0 }
        }
        _ = try await stage.get()
        try await stage.cache.flush()
        #expect(try await stage.get().source == .fresh)
        await stage.end()
    }
}
