import CacheEngine
import CacheTestSupport
import Testing

/// U3 to U12 and U14 to U16: looking up, storing and removing entries by direct calls.
@Suite struct CacheObjectTests {
    static func response(
        _ body: String,
        _ fields: HeaderFields = ["Cache-Control": "max-age=60"]
    ) -> CacheResponse {
        CacheResponse(status: 200, fields: fields, body: BodyStream(ByteChunk(body)))
    }

    @Test("U1: 0 is spelled .disabled, and a cache without memory still answers")
    func disabledMemoryStillAnswers() async throws {
        let stage = try await Stage { $0.memory = .disabled }
        for _ in 0..<2 { #expect(try await stage.get().body == "hello") }
        #expect(stage.origin.count == 2)
        #expect(await stage.cache.statistics.memory.entries == 0)
        await stage.end()
    }

    @Test("U1: a store behind no memory is a cache too")
    func storeBehindNoMemory() async throws {
        let store = RecordingStore()
        let stage = try await Stage {
            $0.memory = .disabled
            $0.backing = .custom(store)
        }
        _ = try await stage.get()
        let hit = try await stage.get()
        #expect(hit.source == .fresh)
        #expect(hit.info.tier == .disk)
        try await stage.cache.flush()
        #expect(await store.count == 1)
        try await stage.cache.remove(CacheRequest(url: Stage.url))
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("U3: caches with stores of their own do not see each other")
    func cachesAreIndependent() async throws {
        let first = try await Stage { $0.backing = .custom(RecordingStore()) }
        let second = try await Stage { $0.backing = .custom(RecordingStore()) }
        _ = try await first.get()
        #expect(try await second.holds() == false)
        try await second.cache.removeAll()
        #expect(try await first.holds())
        await first.end()
        await second.end()
    }

    // MARK: Looking up, storing, removing (U4 to U6)

    @Test("U4, U5: what is stored by hand is looked up, in the variant the request selects")
    func storedByHandIsLookedUp() async throws {
        let stage = try await Stage()
        func request(_ language: String) -> CacheRequest {
            CacheRequest(url: Stage.url, fields: ["Accept-Language": language])
        }
        for language in ["de", "en"] {
            let response = Self.response(
                language,
                ["Cache-Control": "max-age=60", "Vary": "Accept-Language"]
            )
            let outcome = try await stage.cache.store(response, for: request(language))
            #expect(outcome == .stored)
        }
        for language in ["de", "en"] {
            let stored = try await stage.cache.storedResponse(for: request(language))
            #expect(try await stored?.body.collect().text == language)
            #expect(try await stage.send(request(language)).source == .fresh)
        }
        #expect(try await stage.cache.storedResponse(for: request("fr")) == nil)
        #expect(stage.origin.count == 0)
        await stage.end()
    }

    @Test("U5: storing by hand obeys capacity, key and lifetime, and is the caller's own decision")
    func storingByHandObeysItsOptions() async throws {
        let stage = try await Stage { $0.memory = .megabytes(1) }
        let request = CacheRequest(
            url: Stage.url,
            options: RequestOptions(partition: "p", key: "mine")
        )
        var options = HTTPCache.ManualStoreOptions()
        options.lifetime = .seconds(100)
        options.tags = ["t"]
        let unstorable = Self.response("kept", ["Cache-Control": "no-store"])
        #expect(
            try await stage.cache.store(unstorable, for: request, options: options) == .stored
        )
        #expect(try await stage.holds() == false, "Under its own key only")
        stage.clock.advance(seconds: 99)
        #expect(try await stage.send(request).source == .fresh)

        let large = Self.response(String(repeating: "x", count: 200_000))
        #expect(
            try await stage.cache.store(large, for: request, options: options)
                == .refused(.tooLarge)
        )
        #expect(try await stage.cache.storedResponse(for: request) == nil)
        await stage.end()
    }

    @Test("U5: a response that answers one request only is not stored by hand, and ends nothing")
    func responseToOneRequestIsNotStoredByHand() async throws {
        let stage = try await Stage()
        let page = CacheRequest(url: Stage.url)
        try await stage.cache.store(Self.response("older"), for: page)
        var asked = HTTPMethod.all.filter { $0 != .get }.map {
            CacheRequest(method: $0, url: Stage.url)
        }
        asked.append(CacheRequest(url: Stage.url, body: BodyStream(ByteChunk("content"))))
        var head = CacheRequest(method: .head, url: Stage.url)
        head.options.key = "mine"
        asked.append(head)
        for request in asked {
            let error = await #expect(throws: CacheError.self, "\(request.method.name)") {
                try await stage.cache.store(Self.response("other"), for: request)
            }
            #expect(error?.code == .requestInvalid)
        }
        for status in [0, 100, 199, 304, 412, 416, 1_000] {
            var answer = Self.response("other")
            answer.status = status
            let error = await #expect(throws: CacheError.self, "\(status)") {
                try await stage.cache.store(answer, for: page)
            }
            #expect(error?.code == .requestInvalid)
        }
        #expect(try await stage.get().body == "older")
        await stage.end()
    }

    @Test("U4: a look-up finds nothing for a request that no stored response answers")
    func lookUpFindsWhatAnswersTheRequest() async throws {
        let stage = try await Stage()
        try await stage.cache.store(Self.response("page"), for: CacheRequest(url: Stage.url))
        var post = CacheRequest(method: .post, url: Stage.url)
        #expect(try await stage.cache.storedResponse(for: post) == nil)
        let head = CacheRequest(method: .head, url: Stage.url)
        #expect(try await stage.cache.storedResponse(for: head) != nil)
        post.options.key = "mine"
        try await stage.cache.store(Self.response("posted"), for: post)
        let stored = try await stage.cache.storedResponse(for: post)
        #expect(try await stored?.body.collect().text == "posted")
        #expect(stage.origin.count == 0)
        await stage.end()
    }

    @Test(
        "U5: a length that is not that of the body is replaced by it",
        arguments: ["3", "05", "x"]
    )
    func falseLengthIsReplaced(length: String) async throws {
        let stage = try await Stage()
        let fields: HeaderFields = ["Cache-Control": "max-age=60", "Content-Length": length]
        let request = CacheRequest(url: Stage.url)
        try await stage.cache.store(Self.response("hello", fields), for: request)
        let hit = try await stage.send(request)
        #expect(hit.source == .fresh && hit.body == "hello")
        #expect(hit.fields["Content-Length"] == "5")
        await stage.end()
    }

    @Test("U6: remove takes all variants, or the one the request selects")
    func removeTakesAllVariantsOrOne() async throws {
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Vary": "Accept"])
        let stage = try await Stage(origin)
        let types = ["a/a", "b/b", "c/c"]
        func request(_ type: String) -> CacheRequest {
            CacheRequest(url: Stage.url, fields: ["Accept": type])
        }
        for type in types { _ = try await stage.send(request(type)) }
        #expect(try await stage.cache.removeVariant(request("b/b")))
        #expect(try await stage.cache.removeVariant(request("b/b")) == false)
        for type in types {
            #expect(try await stage.holds(Stage.url, ["Accept": type]) == (type != "b/b"))
        }
        #expect(try await stage.cache.remove(request("anything")))
        for type in types { #expect(try await stage.holds(Stage.url, ["Accept": type]) == false) }
        #expect(try await stage.cache.remove(request("anything")) == false)
        await stage.end()
    }

    @Test("U6: markStale takes all variants, and markVariantStale the one the request selects")
    func markStaleTakesAllVariantsOrOne() async throws {
        let origin = ScriptedOrigin { request, _ in
            let coding = request.fields["Accept-Encoding"] ?? "plain"
            let fields: HeaderFields = [
                "Cache-Control": "max-age=60", "ETag": "\"\(coding)\"", "Vary": "Accept-Encoding",
            ]
            return request.fields["If-None-Match"] == fields["ETag"]
                ? OriginResponse(status: 304, fields: fields)
                : .whole(fields: fields, body: coding)
        }
        let stage = try await Stage(origin)
        let plain = CacheRequest(url: Stage.url)
        let brotli = CacheRequest(url: Stage.url, fields: ["Accept-Encoding": "br"])
        for request in [plain, brotli] { _ = try await stage.send(request) }
        #expect(try await stage.cache.markStale(plain))
        for request in [brotli, plain] {
            #expect(try await stage.send(request).source == .revalidated)
            #expect(try await stage.send(request).source == .fresh)
        }
        #expect(try await stage.cache.markVariantStale(brotli))
        #expect(try await stage.send(plain).source == .fresh)
        #expect(try await stage.send(brotli).source == .revalidated)
        let unstored = CacheRequest(url: Stage.url, fields: ["Accept-Encoding": "gzip"])
        #expect(try await stage.cache.markVariantStale(unstored) == false)
        #expect(try await stage.cache.markStale(unstored))
        let missing = CacheRequest(url: "http://example.com/missing")
        #expect(try await stage.cache.markStale(missing) == false)
        await stage.end()
    }

    // MARK: Removal by scope and capacity (U7 to U10)

    @Test("U7: removal by time goes both ways")
    func removalByTimeGoesBothWays() async throws {
        for (scope, kept) in [
            (RemovalScope.storedAfter(unixSeconds: Stage.startSeconds + 100), 0...0),
            (.storedBefore(unixSeconds: Stage.startSeconds + 100), 1...2),
        ] {
            let stage = try await Stage(ScriptedOrigin(fields: ["Cache-Control": "max-age=6000"]))
            for number in 0...2 {
                _ = try await stage.get("http://example.com/\(number)")
                stage.clock.advance(seconds: 100)
            }
            let count = try await stage.cache.removeAll(in: scope)
            #expect(count.entries == 3 - kept.count)
            for number in 0...2 {
                #expect(
                    try await stage.holds("http://example.com/\(number)") == kept.contains(number)
                )
            }
            await stage.end()
        }
    }

    @Test("U8: after removeAll no byte is readable, and writers in flight resurrect nothing")
    func removeAllBeatsWritersInFlight() async throws {
        let store = RecordingStore()
        let body = ManualBody()
        let origin = ScriptedOrigin { request, _ in
            let fields: HeaderFields = ["Cache-Control": "max-age=60"]
            guard request.url.hasSuffix("slow") else {
                return .whole(fields: fields, body: "quick")
            }
            return OriginResponse(status: 200, fields: fields, body: body.stream())
        }
        let stage = try await Stage(origin) { $0.backing = .custom(store) }
        for number in 0..<10 { _ = try await stage.get("http://example.com/\(number)") }
        let slow = CacheRequest(url: "http://example.com/slow")
        let response = try await stage.cache.respond(to: slow)
        body.feed("half ")
        #expect(try await stage.cache.removeAll().entries == 10)
        body.feed("whole")
        body.finish()
        #expect(try await response.body.collect().text == "half whole")
        await stage.cache.waitUntilIdle()
        try await stage.cache.flush()
        #expect(await store.count == 0)
        #expect(await stage.cache.statistics.memory.entries == 0)
        #expect(try await stage.holds(slow.url) == false)
        await stage.end()
    }

    @Test("U9, U10: usage is counted, and never above the capacity")
    func usageNeverExceedsCapacity() async throws {
        let body = String(repeating: "x", count: 10_000)
        let origin = ScriptedOrigin(fields: ["Cache-Control": "max-age=60"], body: body)
        let stage = try await Stage(origin) { $0.memory = .megabytes(2) }
        for number in 0..<500 {
            _ = try await stage.get("http://example.com/\(number)")
            let usage = await stage.cache.statistics.memory
            #expect(usage.bytes <= usage.capacityBytes)
            #expect(usage.capacityBytes == 2 << 20)
        }
        let before = await stage.cache.statistics
        #expect(before.memory.entries > 100)
        #expect(before.evictions > 0)
        await stage.cache.setMemoryCapacity(.kilobytes(512))
        let after = await stage.cache.statistics.memory
        #expect(after.capacityBytes == 512 << 10)
        #expect(after.bytes <= 512 << 10)
        #expect(after.entries > 0)
        await stage.end()
    }

    // MARK: Memory pressure and ephemeral caches (U11, U12, U14)

    @Test("U11: memory pressure frees memory only")
    func memoryPressureFreesMemoryOnly() async throws {
        let store = RecordingStore()
        let stage = try await Stage { $0.backing = .custom(store) }
        for number in 0..<20 { _ = try await stage.get("http://example.com/\(number)") }
        try await stage.cache.flush()
        await stage.cache.relieveMemoryPressure()
        #expect(await stage.cache.statistics.memory.entries == 0)
        #expect(await store.count == 20)
        let hit = try await stage.get("http://example.com/7")
        #expect(hit.source == .fresh)
        #expect(hit.info.tier == .disk)
        #expect(stage.origin.count == 20)
        await stage.end()
    }

    @Test("U12: pressure does not disable the cache")
    func pressureDoesNotDisableTheCache() async throws {
        let stage = try await Stage()
        for _ in 0..<3 { await stage.cache.relieveMemoryPressure() }
        #expect(await stage.cache.statistics.memory.capacityBytes == 32 << 20)
        _ = try await stage.get()
        #expect(try await stage.get().source == .fresh)
        await stage.cache.relieveMemoryPressure(keeping: 1)
        #expect(try await stage.get().source == .fresh)
        for share in [-.infinity, -1, .nan] as [Double] {
            _ = try await stage.get()
            await stage.cache.relieveMemoryPressure(keeping: share)
            #expect(await stage.cache.statistics.memory.entries == 0, "\(share)")
        }
        await stage.end()
    }

    // MARK: Stored by hand

    @Test("a part stored by hand is found again, and an invalid one is refused")
    func aPartStoredByHandIsFoundOrRefused() async throws {
        let ranges: [(String?, Bool)] = [
            ("bytes 0-4/26", true), ("bytes 0-4/*", false), ("bytes 0-3/26", false),
            ("bytes */26", false), ("lines 0-4/26", false), (nil, false),
        ]
        for (range, isStored) in ranges {
            let stage = try await Stage()
            var fields: HeaderFields = ["Cache-Control": "max-age=60", "ETag": "\"1\""]
            if let range { fields["Content-Range"] = range }
            let part = CacheResponse(
                status: 206,
                fields: fields,
                body: BodyStream(ByteChunk("abcde"))
            )
            let request = CacheRequest(url: Stage.url)
            let outcome = try await stage.cache.store(part, for: request)
            #expect((outcome == .stored) == isStored, "\(range ?? "-")")
            let answer = try await stage.get(Stage.url, ["Range": "bytes=1-2"])
            #expect(answer.source == (isStored ? .fresh : .origin), "\(range ?? "-")")
            if isStored { #expect(answer.status == 206 && answer.body == "bc") }
            await stage.end()
        }
    }

    @Test("what no request selects is refused when stored by hand, and ends the older")
    func unselectableStoredByHandIsRefused() async throws {
        func names(_ count: Int) -> String {
            (0..<count).map { "F\($0)" }.joined(separator: ", ")
        }
        let rows: [(vary: String, refusal: String?)] = [
            ("*", "vary-on-everything"), ("Accept, *", "vary-on-everything"),
            (names(17), "vary-too-long"),
            (names(16), nil), ("Accept", nil),
        ]
        for (vary, refusal) in rows {
            let stage = try await Stage()
            let request = CacheRequest(url: Stage.url)
            try await stage.cache.store(Self.response("older"), for: request)
            let fields: HeaderFields = ["Cache-Control": "max-age=60", "Vary": vary]
            let outcome = try await stage.cache.store(Self.response("new", fields), for: request)
            #expect(outcome == (refusal == nil ? .stored : .refused(.notAdmitted)), "\(vary)")
            let stored = try await stage.cache.storedResponse(for: request)
            #expect(try await stored?.body.collect().text == (refusal == nil ? "new" : nil))
            let refusals = await stage.cache.statistics.refusals
            #expect(refusals.map(\.key.description) == [refusal].compactMap { $0 })
            await stage.end()
        }
    }

    @Test("U14: the ephemeral preset is a private cache in memory alone")
    func ephemeralIsMemoryAlone() async throws {
        let stage = try await Stage(
            ScriptedOrigin(fields: ["Cache-Control": "private, max-age=60"])
        ) { $0 = .ephemeral() }
        _ = try await stage.get()
        #expect(try await stage.get().info.tier == .memory)
        #expect(await stage.cache.statistics.disk == StoreUsage())
        await stage.end()
    }

    @Test("U14: the persistent preset is a private cache that survives a restart")
    func persistentSurvivesARestart() async throws {
        let folder = try Folder()
        let origin = ScriptedOrigin(fields: ["Cache-Control": "private, max-age=60"])
        let clock = TestClock()
        for _ in 0..<2 {
            let stage = try await Stage(origin, clock: clock) {
                $0 = .persistent(path: folder.path("cache"), capacity: .megabytes(8))
            }
            _ = try await stage.get()
            await stage.end()
        }
        #expect(origin.count == 1)
    }

    // MARK: Random use and odd URLs (U15, U16)

    private static let filler = String(repeating: "x", count: 300_000)

    @Test(
        "U15: random storing, replacing and removing never traps and never mixes answers",
        arguments: 0..<64
    )
    func randomUseNeverMixesAnswers(seed: UInt64) async throws {
        var random = SeededRandom(seed: seed)
        let stage = try await Stage { $0.memory = .megabytes(1) }
        var latest: [Int: String] = [:]
        for step in 0..<150 {
            let number = Int.random(in: 0..<12, using: &random)
            let request = CacheRequest(url: "http://example.com/\(number)")
            switch UInt8.random(in: 0..<10, using: &random) {
            case 0..<5:
                let size = [0, 10, 5_000, 60_000, 300_000].randomElement(using: &random) ?? 0
                let body = "\(step)" + Self.filler.prefix(size)
                latest[number] = body
                _ = try await stage.cache.store(Self.response(body), for: request)
            case 5:
                latest[number] = nil
                try await stage.cache.remove(request)
            case 6: stage.clock.advance(seconds: 20)
            case 7: await stage.cache.setMemoryCapacity(.kilobytes(512 << (step % 3)))
            default:
                guard let stored = try await stage.cache.storedResponse(for: request) else { break }
                let body = try await stored.body.collect().text
                #expect(body == latest[number], "seed \(seed), step \(step)")
            }
        }
        await stage.end()
    }

    @Test("U16: any URL up to 64 KB is stored and found again")
    func longAndOddUrlsRoundTrip() async throws {
        let stage = try await Stage()
        var urls = [
            "http://example.com/\u{E4}\u{1F600}", "http://[::1]:8080/", "http://user:p@h/x",
            "http://xn--bcher-kva.example/%zz%", "http://h/?a=b&&=;,+%20|{}\\^`",
            "HTTP://EXAMPLE.com:80", "http://h/a/../b/./c//d;p=1?q#f", "https://h:443?x",
            "http://h/'\"<>", "http://127.0.0.1:65535/*",
        ]
        for count in [100, 1_000, 8_192, 65_000] {
            urls.append("http://example.com/" + String(repeating: "p", count: count))
            urls.append("http://example.com/?" + String(repeating: "q", count: count))
        }
        for url in urls { _ = try await stage.get(url) }
        for url in urls { #expect(try await stage.get(url).source == .fresh, "\(url.prefix(60))") }
        #expect(stage.origin.count == urls.count)
        await stage.end()
    }

    @Test(
        "U16: what is no absolute URL is a clear error",
        arguments: [
            "", "/a", "example.com/a", "http:", "http://", "http:///a", "http://h/a b",
            "http://h/\n",
            "://h", "1http://h/", "http://h\u{0}/",
        ]
    )
    func brokenUrlsAreErrors(url: String) async throws {
        let stage = try await Stage()
        await #expect {
            try await stage.get(url)
        } throws: {
            ($0 as? CacheError)?.code == .requestInvalid
        }
        #expect(stage.origin.count == 0)
        await stage.end()
    }

    @Test("a body that ends before its own length is not stored")
    func bodyShorterThanItsLengthIsRefused() async throws {
        let stage = try await Stage()
        let (pieces, feed) = AsyncStream<ByteChunk>.makeStream()
        feed.yield(ByteChunk("five!"))
        feed.finish()
        let response = CacheResponse(status: 200, body: BodyStream(pieces, count: 10))
        let error = await #expect(throws: CacheError.self) {
            try await stage.cache.store(response, for: CacheRequest(url: Stage.url))
        }
        #expect(error?.code == .bodyTruncated)
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("a request that the policy keeps from the store says so, and when the origin was late")
    func bypassAndTimeoutsAreNamed() async throws {
        let origin = ScriptedOrigin { _, number in
            if number > 1 { throw CacheError(.originTimedOut, detail: "late") }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "x")
        }
        let stage = try await Stage(origin)
        let answer = try await stage.get(policy: .bypass)
        #expect(answer.fields["Cache-Status"]?.contains("fwd=bypass") == true)
        await #expect(throws: CacheError.self) { try await stage.get("http://example.com/b") }
        #expect(await stage.cache.statistics.timeouts == 1)
        await stage.end()
    }
}
