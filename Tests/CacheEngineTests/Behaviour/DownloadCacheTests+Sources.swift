import CacheEngine
import CacheTestSupport
import Testing

/// Redirects, sources, keys and body codings (A18 to A26).
extension DownloadCacheTests {
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

    @Test("A20: every response says where it came from")
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
