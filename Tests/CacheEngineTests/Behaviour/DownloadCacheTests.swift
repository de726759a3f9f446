import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// A4 to A20 and A23 to A26: the promises of classic download caches.
@Suite struct DownloadCacheTests {
    // MARK: Policy bits (A4 to A11)

    /// The effect of a combination of policy bits on a fresh entry, a stale entry and no entry.
    ///
    /// Each row is written by hand from the classic documentation.
    struct Meaning: Hashable {
        enum Deed: Hashable { case serve, ask, load, fail }
        let fresh: Deed
        let stale: Deed
        let missing: Deed
        let fallsBack: Bool
        let writes: Bool
    }

    static func meaning(of bits: DownloadCachePolicy) -> Meaning {
        let writes = !bits.contains(.doNotWriteToCache)
        let fallsBack = bits.contains(.fallbackToCacheIfLoadFails)
        if bits.contains(.doNotReadFromCache) {
            return .init(
                fresh: .load,
                stale: .load,
                missing: .load,
                fallsBack: false,
                writes: writes
            )
        }
        if bits.contains(.dontLoad) {
            return .init(
                fresh: .serve,
                stale: .serve,
                missing: .fail,
                fallsBack: fallsBack,
                writes: writes
            )
        }
        if bits.contains(.onlyLoadIfNotCached) {
            return .init(
                fresh: .serve,
                stale: .serve,
                missing: .load,
                fallsBack: fallsBack,
                writes: writes
            )
        }
        let asksAlways =
            bits.contains(.askServerIfModified) && !bits.contains(.askServerIfModifiedWhenStale)
        return .init(
            fresh: asksAlways ? .ask : .serve,
            stale: .ask,
            missing: .load,
            fallsBack: fallsBack,
            writes: writes
        )
    }

    @Test("A4-A11: the precedence of the policy bits, for all 128 combinations", arguments: 0..<128)
    func policyBitsHaveAPrecedence(raw: Int) async throws {
        let bits = DownloadCachePolicy(rawValue: raw)
        let meaning = Self.meaning(of: bits)
        let policy = CachePolicy(bits)
        #expect(policy.writes == meaning.writes)
        for (ageSeconds, deed) in [(10.0, meaning.fresh), (100, meaning.stale)] {
            let stage = try await Stage(Resource())
            _ = try await stage.get()
            stage.clock.advance(seconds: ageSeconds)
            let answer = try await stage.get(policy: policy)
            let isConditional = stage.origin.requests.last?.fields.contains("If-None-Match") == true
            switch deed {
            case .serve: #expect(stage.origin.count == 1)
            case .ask:
                #expect(stage.origin.count == 2)
                #expect(isConditional)
                #expect(answer.source == .revalidated)
            case .load:
                #expect(stage.origin.count == 2)
                #expect(!isConditional)
                #expect(answer.source == .origin)
            case .fail: Issue.record("Something is stored")
            }
            await stage.end()
        }
        let empty = try await Stage(Resource())
        if meaning.missing == .fail {
            await #expect(throws: CacheError.self) { try await empty.get(policy: policy) }
            #expect(empty.origin.count == 0)
        } else {
            #expect(try await empty.get(policy: policy).source == .origin)
            #expect(try await empty.holds() == meaning.writes)
        }
        await empty.end()
    }

    @Test("A10: which combinations fall back when loading fails", arguments: 0..<128)
    func fallbackFollowsItsBit(raw: Int) async throws {
        let bits = DownloadCachePolicy(rawValue: raw)
        let meaning = Self.meaning(of: bits)
        guard meaning.stale == .ask || meaning.stale == .load else { return }
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60, must-revalidate"]))
        _ = try await stage.get()
        stage.clock.advance(seconds: 100)
        stage.origin.cutOff()
        if meaning.fallsBack {
            let answer = try await stage.get(policy: CachePolicy(bits))
            #expect(answer.source == .fallback)
            #expect(answer.body == "one")
        } else {
            await #expect(throws: CacheError.self) {
                try await stage.get(policy: CachePolicy(bits))
            }
        }
        await stage.end()
    }

    @Test("A4: not reading means no conditional fields and a full answer")
    func notReadingMeansAFullAnswer() async throws {
        let stage = try await Stage(Resource())
        _ = try await stage.get()
        let answer = try await stage.get(policy: CachePolicy(.doNotReadFromCache))
        #expect(answer.status == 200)
        #expect(stage.origin.requests[1].fields.isEmpty)
        await stage.end()
    }

    @Test("A5: not writing changes nothing, not even on a 304")
    func notWritingChangesNothing() async throws {
        let store = RecordingStore()
        let resource = Resource(["Cache-Control": "max-age=60", "X-Turn": "1"])
        let stage = try await Stage(resource) { $0.backing = .custom(store) }
        _ = try await stage.get()
        try await stage.cache.flush()
        let before = await stage.cache.statistics.memory
        stage.clock.advance(seconds: 61)
        resource.change(fields: ["Cache-Control": "max-age=60", "X-Turn": "2"])
        let policy = CachePolicy(.doNotWriteToCache)
        let answer = try await stage.get(policy: policy)
        #expect(answer.source == .revalidated)
        #expect(answer.fields["X-Turn"] == "2")
        let again = try await stage.get(policy: policy)
        #expect(again.source == .revalidated, "It was not freshened")
        resource.change(body: "two", tag: "\"2\"")
        #expect(try await stage.get(policy: policy).body == "two")
        #expect(try await stage.get(policy: .cacheOnly).body == "one")
        #expect(try await stage.get(policy: .cacheOnly).fields["X-Turn"] == "1")
        try await stage.cache.flush()
        #expect(await stage.cache.statistics.memory == before)
        #expect(await store.stores == 1)
        await stage.end()
    }

    @Test("A6, A7: asking when stale is the protocol, asking always is revalidating; a 200 wins")
    func askingWhenStaleAndAlways() async throws {
        #expect(CachePolicy(.askServerIfModifiedWhenStale) == .standard)
        #expect(CachePolicy([]) == .standard)
        #expect(CachePolicy(.askServerIfModified) == .revalidate)
        let resource = Resource()
        let stage = try await Stage(resource)
        _ = try await stage.get()
        resource.change(body: "two", tag: "\"2\"")
        #expect(try await stage.get(policy: CachePolicy(.askServerIfModified)).body == "two")
        #expect(try await stage.get(policy: .cacheOnly).body == "two")
        await stage.end()
    }

    @Test("A8, A9: only-if-not-cached and don't-load, in the throwing form and the nil form")
    func cachedOnlyInBothForms() async throws {
        #expect(CachePolicy(.onlyLoadIfNotCached) == .cacheElseLoad)
        #expect(CachePolicy(.dontLoad) == .cacheOnly)
        let stage = try await Stage()
        await #expect(throws: CacheError.self) {
            try await stage.get(policy: CachePolicy(.dontLoad))
        }
        let request = CacheRequest(url: Stage.url)
        #expect(try await stage.cache.storedResponse(for: request) == nil)
        #expect(stage.cache.immediateResponse(to: request) == nil)
        #expect(stage.origin.count == 0)
        _ = try await stage.get(policy: CachePolicy(.onlyLoadIfNotCached))
        #expect(stage.cache.immediateResponse(to: request)?.info.source == .fresh)
        stage.clock.advance(seconds: 1_000)
        #expect(stage.cache.immediateResponse(to: request) == nil, "Stale: HTTP wants it confirmed")
        #expect(
            stage.cache.immediateResponse(to: request, policy: CachePolicy(.dontLoad))?.info.source
                == .stale
        )
        await stage.end()
    }

    @Test("A10: the stand-in says stale and why; timeouts count; a list and a limit are options")
    func fallbackSaysWhy() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        stage.clock.advance(seconds: 1_000_000)
        let error = CacheError(.originTimedOut, detail: "On purpose")
        stage.origin.follow { _, _ in throw error }
        let policy = CachePolicy(.fallbackToCacheIfLoadFails)
        let answer = try await stage.get(policy: policy)
        #expect(answer.source == .fallback)
        #expect(answer.info.isStale)
        #expect(answer.info.fallbackError as? CacheError == error)

        // The failure is no longer shared with later requests.
        stage.clock.advance(seconds: 2)
        stage.origin.follow { _, _ in .whole(status: 503, body: "busy") }
        #expect(try await stage.get(policy: policy).status == 503, "Only where the list says so")
        let listed = CachePolicy(fallback: .always(statuses: [503, 404]))
        let standIn = try await stage.get(policy: listed)
        #expect(standIn.source == .fallback)
        #expect(standIn.info.originStatus == 503)

        let limited = CachePolicy(
            fallback: .always(statuses: [503], maximumStaleness: .seconds(900_000))
        )
        #expect(try await stage.get(policy: limited).status == 503)
        await stage.end()
    }

    @Test("A10: a cancelled caller gets no stand-in")
    func cancelledCallerGetsNoFallback() async throws {
        let stage = try await Stage()
        _ = try await stage.get()
        stage.clock.advance(seconds: 1_000)
        let body = ManualBody()
        stage.origin.follow { _, _ in
            _ = try await body.next()
            throw CancellationError()
        }
        let cache = stage.cache
        let task = Task {
            try await cache.respond(
                to: CacheRequest(url: Stage.url),
                policy: CachePolicy(.fallbackToCacheIfLoadFails)
            )
        }
        for _ in 0..<10_000 where stage.origin.count < 2 { await Task.yield() }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        body.finish()
        await stage.end()
    }

    @Test("A11: the cache's default policy is resolved without touching the request")
    func defaultPolicyIsTheCaches() async throws {
        let stage = try await Stage { $0.policy = .cacheElseLoad }
        let request = CacheRequest(url: Stage.url)
        _ = try await stage.send(request)
        stage.clock.advance(seconds: 1_000)
        #expect(try await stage.send(request).source == .stale)
        #expect(request.options.policy == nil)
        #expect(stage.origin.requests[0].fields.isEmpty)
        var own = request
        own.options.policy = .standard
        #expect(try await stage.send(own, policy: .cacheOnly).source == .stale, "The call's first")
        #expect(try await stage.send(own).source == .origin, "Then the request's own")
        await stage.end()
    }

    // MARK: Storage classes and overrides (A12 to A16)

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

    // MARK: Redirects and sources (A18, A20)

    @Test("A18: which redirects are stored, and that each hop is replayed as it was")
    func redirectsAreStoredHopByHop() async throws {
        for (status, fields, options, isStored) in [
            (
                301, ["ETag": "\"1\"", "Last-Modified": Stage.date(-1_000)],
                CachingRules.Redirects.followFreshness, true
            ),
            (308, ["Last-Modified": Stage.date(-1_000)], .followFreshness, true),
            (302, ["Cache-Control": "max-age=60"], .followFreshness, true),
            (303, ["Cache-Control": "max-age=60"], .followFreshness, true),
            (307, ["Cache-Control": "max-age=60"], .followFreshness, true),
            (302, [:], .followFreshness, false), (303, [:], .followFreshness, false),
            (307, [:], .followFreshness, false), (302, [:], .storeAll, true),
            (303, [:], .storeAll, true), (307, [:], .storeAll, true),
        ] as [(Int, HeaderFields, CachingRules.Redirects, Bool)] {
            var fields = fields
            fields["Location"] = "http://example.com/next"
            let stage = try await Stage(ScriptedOrigin(status: status, fields: fields, body: "")) {
                $0.caching.redirects = options
            }
            _ = try await stage.get()
            #expect(try await stage.holds() == isStored, "\(status) \(options)")
            if isStored {
                let replay = try await stage.get(policy: .cacheOnly)
                #expect(replay.status == status)
                #expect(replay.fields["Location"] == "http://example.com/next")
            }
            #expect(stage.origin.requests.allSatisfy { $0.url == Stage.url }, "Nothing is followed")
            await stage.end()
        }
    }

    @Test("A20: every answer says where it came from")
    func answersSayWhereTheyCameFrom() async throws {
        let stage = try await Stage(Resource(["Cache-Control": "max-age=60, stale-if-error=1000"]))
        var seen: [CacheInfo.Source: Bool] = [:]
        func note(_ answer: Answer) { seen[answer.source] = answer.info.didUseCachedResponse }
        note(try await stage.get())
        note(try await stage.get())
        stage.clock.advance(seconds: 61)
        note(try await stage.get(policy: .cacheOnly))
        note(try await stage.get())
        stage.clock.advance(seconds: 61)
        stage.origin.cutOff()
        note(try await stage.get())
        note(try await stage.get("http://x/", ["Cache-Control": "only-if-cached"]))
        #expect(
            seen == [
                .origin: false, .fresh: true, .stale: true, .revalidated: true, .fallback: true,
                .generated: false,
            ]
        )
        let answers = await stage.cache.statistics.answers
        #expect(answers.filter { $0.value > 0 } == seen.mapValues { _ in 1 })
        await stage.end()
    }

    @Test("A20: who shared another's fetch is told so")
    func collapsedResponseSaysSo() async throws {
        let body = ManualBody()
        let stage = try await Stage(
            ScriptedOrigin { _, _ in
                _ = try await body.next()
                return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
            }
        )
        let cache = stage.cache
        let tasks = (0..<64).map { _ in
            Task { try await cache.respond(to: CacheRequest(url: Stage.url)).info.source }
        }
        for _ in 0..<10_000 { await Task.yield() }
        body.feed("go")
        var sources: [CacheInfo.Source: Int] = [:]
        for task in tasks { sources[try await task.value, default: 0] += 1 }
        #expect(sources[.origin] == 1)
        #expect(sources[.collapsed, default: 0] > 0)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    // MARK: Keys and body codings (A23 to A26)

    @Test("A23: no slash is stripped from a key, and no fragment is part of it")
    func keysKeepSlashesAndDropFragments() async throws {
        let stage = try await Stage()
        _ = try await stage.get("http://example.com/a/#top")
        #expect(stage.origin.requests[0].url == "http://example.com/a/")
        #expect(try await stage.get("http://example.com/a/#end").source == .fresh)
        #expect(try await stage.holds("http://example.com/a") == false)
        #expect(try await stage.get("http://example.com/a").source == .origin)
        await stage.end()
    }

    @Test("A24, A25: coded bodies are kept as they came, with the fields that describe them")
    func codedBodiesAreKeptAsTheyCame() async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Encoding": "gzip"]
        let stage = try await Stage(ScriptedOrigin(fields: fields, body: "coded"))
        for _ in 0..<2 {
            let answer = try await stage.get()
            #expect(answer.body == "coded")
            #expect(answer.fields["Content-Encoding"] == "gzip")
            #expect(answer.fields["Content-Length"] == "5")
        }
        await stage.end()
    }

    @Test("A24: an origin that decodes says so by leaving coding and length out, and so do we")
    func decodedBodiesHaveNoCodingAndNoLength() async throws {
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: BodyStream(ByteChunk("decoded"))
            )
        }
        let stage = try await Stage(origin)
        for _ in 0..<2 {
            let answer = try await stage.get()
            #expect(answer.body == "decoded")
            #expect(answer.fields["Content-Encoding"] == nil)
            #expect(answer.fields["Content-Length"] == nil)
        }
        await stage.end()
    }

    @Test("A26: whether Set-Cookie is replayed is an option")
    func cookieReplayIsAnOption() async throws {
        let fresh: HeaderFields = ["Cache-Control": "max-age=60", "Set-Cookie": "a=b"]
        for (cookies, isStored, isReplayed) in [
            (CachingRules.Cookies.refuse, false, false), (.strip, true, false),
            (.store, true, true),
        ] {
            let stage = try await Stage(ScriptedOrigin(fields: fresh)) {
                $0.caching.cookies = cookies
            }
            #expect(try await stage.get().fields["Set-Cookie"] == "a=b")
            let second = try await stage.get()
            #expect((second.source == .fresh) == isStored, "\(cookies)")
            if isStored {
                #expect((second.fields["Set-Cookie"] == "a=b") == isReplayed, "\(cookies)")
            }
            await stage.end()
        }
    }
}
