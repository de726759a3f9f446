import CacheEngine
import CacheTestSupport
import Testing

/// H19: variants of one resource.
@Suite struct VaryTests {
    /// An origin whose body names the language and encoding of the request.
    static func origin(_ vary: String = "Accept-Language") -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            let language = request.fields["Accept-Language"] ?? "-"
            let encoding = request.fields["Accept-Encoding"] ?? "-"
            return .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": vary],
                body: "\(language) \(encoding)"
            )
        }
    }

    @Test("H19: many variants of one URL are kept apart")
    func manyVariantsAreKeptApart() async throws {
        let stage = try await Stage(Self.origin())
        let languages = (0..<50).map { "x-\($0)" }
        for source in [CacheInfo.Source.origin, .fresh] {
            for language in languages {
                let answer = try await stage.get(Stage.url, ["Accept-Language": language])
                #expect(answer.body == "\(language) -")
                #expect(answer.source == source)
            }
        }
        #expect(try await stage.get().body == "- -")
        #expect(stage.origin.count == 51)
        await stage.end()
    }

    @Test("H19, X20: the number of variants is bounded")
    func variantsAreBounded() async throws {
        let stage = try await Stage(Self.origin()) { $0.caching.maximumVariants = 8 }
        for number in 0..<100 {
            _ = try await stage.get(Stage.url, ["Accept-Language": "x-\(number)"])
        }
        var reachable = 0
        for number in 0..<100
        where try await stage.holds(Stage.url, ["Accept-Language": "x-\(number)"]) {
            reachable += 1
        }
        #expect(reachable == 8)
        #expect(try await stage.holds(Stage.url, ["Accept-Language": "x-0"]))
        let refusals = await stage.cache.statistics.refusals
        #expect(refusals == [StoreRefusalReason("too-many-variants"): 92])
        // A new variant is stored once the existing ones have expired.
        stage.clock.advance(seconds: 60)
        _ = try await stage.get(Stage.url, ["Accept-Language": "x-99"])
        #expect(try await stage.holds(Stage.url, ["Accept-Language": "x-99"]))
        for number in 0..<8 {
            #expect(try await !stage.holds(Stage.url, ["Accept-Language": "x-\(number)"]))
        }
        await stage.end()
    }

    @Test("F11: variants counted by a clock that was ahead bar no others for longer than a minute")
    func rollOfAClockThatWasAheadEnds() async throws {
        let folder = try Folder()
        for (run, startSeconds) in [Stage.startSeconds + 1_000_000, Stage.startSeconds].enumerated()
        {
            let clock = TestClock(startSeconds: startSeconds)
            let stage = try await Stage(Self.origin(), clock: clock) {
                $0.caching.maximumVariants = 8
                $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(16))
            }
            for number in 0..<8 where run == 0 {
                _ = try await stage.get(Stage.url, ["Accept-Language": "x-\(number)"])
            }
            if run == 1 {
                clock.advance(seconds: 60)
                let ninth = try await stage.get(Stage.url, ["Accept-Language": "x-9"])
                #expect(ninth.info.isStored)
                #expect(try await stage.holds(Stage.url, ["Accept-Language": "x-9"]))
            }
            await stage.end()
        }
    }

    @Test("H19: selecting fields are compared in a normal form, which can be chosen")
    func selectingFieldsHaveANormalForm() async throws {
        for (form, same, different) in [
            (nil, "de, en", "de,  en"), (.verbatim, "de", "de"),
            (.list, "de,en", "de , en"), (.weighted, "en;q=0.5, de", "de, en;q=0.5"),
            (.best(of: ["de", "en"]), "de, fr;q=0.1", "it;q=0.1, de"),
        ] as [(CachingRules.SelectingField?, String, String)] {
            let stage = try await Stage(Self.origin()) {
                if let form { $0.caching.selectingFields["Accept-Language"] = form }
            }
            _ = try await stage.get(Stage.url, ["Accept-Language": same])
            let answer = try await stage.get(Stage.url, ["Accept-Language": different])
            #expect(answer.source == .fresh, "\(String(describing: form))")
            let other = try await stage.get(Stage.url, ["Accept-Language": "en"])
            #expect(other.source == .origin, "\(String(describing: form))")
            await stage.end()
        }
    }

    @Test(
        "H19: a soft purge of a URL makes all its variants stale, also for the next process",
        arguments: [false, true]
    )
    func softPurgeOfAURLConcernsAllVariants(isOnDisk: Bool) async throws {
        let folder = try Folder()
        let placed: (HTTPCache.Configuration) -> HTTPCache.Configuration = { given in
            var configuration = given
            if isOnDisk {
                configuration.backing = .disk(path: folder.path, capacity: .megabytes(16))
            }
            return configuration
        }
        let origin = Self.confirmingOrigin()
        var stage = try await Stage(origin) { $0 = placed($0) }
        let other = "http://example.com/b"
        let languages = ["de", "en"].map { HeaderFields([("Accept-Language", $0)]) }
        for url in [Stage.url, other] {
            for fields in languages { _ = try await stage.get(url, fields) }
        }
        let missing = CacheRequest(url: "http://example.com/c")
        #expect(try await stage.cache.purge(.request(missing), isSoft: true).entries == 0)
        let purged = CacheRequest(url: Stage.url)
        #expect(try await stage.cache.purge(.request(purged), isSoft: true).entries == 1)
        if isOnDisk {
            await stage.end()
            stage = try await Stage(origin, clock: stage.clock) { $0 = placed($0) }
        }
        for source in [CacheInfo.Source.revalidated, .fresh] {
            for fields in languages {
                let answer = try await stage.get(Stage.url, fields)
                #expect(answer.source == source && answer.body == fields["Accept-Language"])
                #expect(try await stage.get(other, fields).source == .fresh)
            }
        }
        await stage.end()
    }

    /// Its entries would outlive the mark.
    @Test func softPurgeOfAURLRemovesTheVariantsOfACustomStore() async throws {
        let store = InMemoryStore()
        let stage = try await Stage(Self.confirmingOrigin()) { $0.backing = .custom(store) }
        let german: HeaderFields = ["Accept-Language": "de"]
        _ = try await stage.get(Stage.url, german)
        let purged = CacheRequest(url: Stage.url)
        #expect(try await stage.cache.purge(.request(purged), isSoft: true).entries == 1)
        #expect(try await stage.holds(Stage.url, german) == false)
        #expect(try await stage.get(Stage.url, german).source == .origin)
        await stage.end()
    }

    /// An origin that confirms each variant.
    private static func confirmingOrigin() -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            let language = request.fields["Accept-Language"] ?? "-"
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "ETag": "\"\(language)\"",
                "Vary": "Accept-Language",
            ]
            return request.fields["If-None-Match"] == fields["ETag"]
                ? OriginResponse(status: 304, fields: fields)
                : .whole(fields: fields, body: language)
        }
    }

    @Test("H19: Vary * matches nothing")
    func varyOnEverythingMatchesNothing() async throws {
        let stage = try await Stage(Self.origin("Accept-Language, *"))
        for _ in 0..<2 { #expect(try await stage.get().source == .origin) }
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("H19, X14: Vary may appear and vanish")
    func varyMayAppearAndVanish() async throws {
        let vary = ["", "Accept-Language", ""]
        let origin = ScriptedOrigin { request, number in
            let language = request.fields["Accept-Language"] ?? "-"
            return .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": vary[(number - 1) % 3]],
                body: "\(number) \(language)"
            )
        }
        let stage = try await Stage(origin)
        let german: HeaderFields = ["Accept-Language": "de"]
        #expect(try await stage.get(Stage.url, german).body == "1 de")
        #expect(try await stage.get().body == "1 de", "No Vary: one answer for all")
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(Stage.url, german).body == "2 de")
        #expect(try await stage.get(Stage.url, german).source == .fresh)
        #expect(try await stage.get().body == "3 -", "Vary appeared: not for everyone any more")
        #expect(try await stage.get(Stage.url, german).body == "3 -", "And vanished again")
        #expect(origin.count == 3)
        await stage.end()
    }

    @Test("H19: two sets of selecting fields live side by side")
    func twoSetsOfSelectingFields() async throws {
        let origin = ScriptedOrigin { request, _ in
            let isCompressed = request.fields["Accept-Encoding"] == "gzip"
            return .whole(
                fields: [
                    "Cache-Control": "max-age=60",
                    "Vary": isCompressed ? "Accept-Encoding" : "Accept-Encoding, Accept-Language",
                ],
                body: isCompressed ? "gzip" : request.fields["Accept-Language"] ?? "-"
            )
        }
        let stage = try await Stage(origin)
        let requests: [(HeaderFields, String)] = [
            (["Accept-Encoding": "gzip", "Accept-Language": "de"], "gzip"),
            (["Accept-Language": "de"], "de"), (["Accept-Language": "en"], "en"),
        ]
        for source in [CacheInfo.Source.origin, .fresh] {
            for (fields, body) in requests {
                let answer = try await stage.get(Stage.url, fields)
                #expect(answer.body == body)
                #expect(answer.source == source)
            }
        }
        await stage.end()
    }

    /// An origin whose responses name the fields of `sets`, one after the other, and whose bodies are
    /// their numbers; those beyond are not to be stored.
    private static func origin(sets: [String], bodyCount: Int = 1) -> ScriptedOrigin {
        ScriptedOrigin { _, number in
            guard number <= sets.count else {
                return .whole(fields: ["Cache-Control": "no-store"], body: "\(number)")
            }
            return .whole(
                fields: ["Cache-Control": "max-age=60", "Vary": sets[number - 1]],
                body: String(repeating: "\(number)", count: number == 2 ? bodyCount : 1)
            )
        }
    }

    private static let reload: HeaderFields = ["X": "c", "Cache-Control": "no-cache"]

    @Test("of two sets that lead to responses the more recent one is served (RFC 9111 §4)")
    func mostRecentOfTwoSetsIsServed() async throws {
        let stage = try await Stage(Self.origin(sets: ["X", "X, Y", "X"]))
        _ = try await stage.get(Stage.url, ["X": "c"])
        stage.clock.advance(seconds: 1)
        _ = try await stage.get(Stage.url, Self.reload)
        // The set of the response before becomes the newest one.
        _ = try await stage.get(Stage.url, ["X": "a"])
        let found = try await stage.get(Stage.url, ["X": "c"])
        #expect(found.source == .fresh)
        #expect(found.body == "2")
        await stage.end()
    }

    @Test("a more recent response on disk is served before one in memory")
    func moreRecentResponseBehindTheMemoryIsServed() async throws {
        let folder = try Folder()
        let bytes = 600_000
        let stage = try await Stage(Self.origin(sets: ["X", "X, Y"], bodyCount: bytes)) {
            $0.memory = .megabytes(1)
            $0.backing = .disk(path: folder.path("cache"), capacity: .megabytes(64))
        }
        _ = try await stage.get(Stage.url, ["X": "c"])
        stage.clock.advance(seconds: 1)
        _ = try await stage.get(Stage.url, Self.reload)
        let found = try await stage.get(Stage.url, ["X": "c"])
        #expect(found.source == .fresh)
        #expect(found.body.utf8.count == bytes)
        await stage.end()
    }

    @Test("a response that is withdrawn does not come back by an older set")
    func withdrawnResponseDoesNotComeBackByAnOlderSet() async throws {
        let stage = try await Stage(Self.origin(sets: ["X", "X, Y"]))
        _ = try await stage.get(Stage.url, ["X": "c"])
        stage.clock.advance(seconds: 1)
        for _ in 0..<2 { _ = try await stage.get(Stage.url, Self.reload) }
        #expect(try await stage.get(Stage.url, ["X": "c"]).source == .origin)
        #expect(stage.origin.count == 4)
        await stage.end()
    }

    @Test("H19: each variant has its own freshness and validator")
    func variantsAreConfirmedOneByOne() async throws {
        let origin = ScriptedOrigin { request, _ in
            let language = request.fields["Accept-Language"] ?? "-"
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "Vary": "Accept-Language",
                "ETag": "\"\(language)\"",
            ]
            if request.fields["If-None-Match"] == fields["ETag"] {
                return OriginResponse(status: 304, fields: fields)
            }
            return .whole(fields: fields, body: language)
        }
        let stage = try await Stage(origin)
        for language in ["de", "en"] {
            _ = try await stage.get(Stage.url, ["Accept-Language": language])
        }
        stage.clock.advance(seconds: 61)
        for language in ["de", "en"] {
            let answer = try await stage.get(Stage.url, ["Accept-Language": language])
            #expect(answer.source == .revalidated)
            #expect(answer.body == language)
        }
        for language in ["de", "en"] {
            let answer = try await stage.get(Stage.url, ["Accept-Language": language])
            #expect(answer.source == .fresh)
        }
        #expect(origin.count == 4)
        await stage.end()
    }

    @Test("H19: the parts of one variant are one variant, also when they are fetched together")
    func partsOfOneVariantAreOneVariant() async throws {
        for isTogether in [false, true] {
            let origin = RangeTests.origin([
                "Cache-Control": "max-age=60", "ETag": "\"1\"", "Vary": "Accept-Language",
            ])
            let stage = try await Stage(origin) { $0.caching.maximumVariants = 8 }
            let german: HeaderFields = ["Accept-Language": "de"]
            _ = try await stage.get(Stage.url, german)
            func part(_ start: Int) -> CacheRequest {
                let range = "bytes=\(start)-\(start)"
                return CacheRequest(
                    url: Stage.url,
                    fields: ["Accept-Language": "en", "Range": range]
                )
            }
            if isTogether {
                try await withThrowingTaskGroup { group in
                    for start in 0..<26 {
                        group.addTask { _ = try await stage.send(part(start)) }
                    }
                    try await group.waitForAll()
                }
            } else {
                for start in 0..<26 { _ = try await stage.send(part(start)) }
            }
            #expect(try await stage.holds(Stage.url, german), "together: \(isTogether)")
            await stage.end()
        }
    }
}
