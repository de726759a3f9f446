import CacheEngine
import CacheTestSupport
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

    @Test("A4: not reading means no conditional fields and a full response")
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
        #expect(answer.info.isStored == false)
        #expect(
            answer.fields["Cache-Status"]
                == "CacheEngine; fwd=stale; fwd-status=304; detail=policy"
        )
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
        #expect(await eventually { stage.origin.count == 2 })
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        body.finish()
        await stage.end()
    }

    @Test("A11: without a bit the cache's default holds, in each face", arguments: 0..<128)
    func bitsWithoutABitAreTheDefault(raw: Int) async throws {
        let bits = DownloadCachePolicy(rawValue: raw)
        #expect(bits.cachePolicy == (raw == 0 ? nil : CachePolicy(bits)))
        guard raw == 0 else { return }
        let stage = try await Stage { $0.policy = CachePolicy(.dontLoad) }
        let request = CacheRequest(
            url: Stage.url,
            options: RequestOptions(policy: bits.cachePolicy)
        )
        await #expect(throws: CacheError.self) { try await stage.send(request) }
        await #expect(throws: CacheError.self) {
            try await stage.get(policy: bits.cachePolicy)
        }
        #expect(stage.origin.count == 0)
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
}
