import CacheEngine
import CacheTestSupport
import Synchronization
import Testing

/// H2, H12 to H17 and H22: which responses are stored, and under which key.
@Suite struct HTTPBehaviourTests {
    @Test("H2: only http and https responses are stored, unless another scheme is named")
    func otherSchemesPassBy() async throws {
        let url = "gopher://example.com/a"
        let stage = try await Stage()
        for _ in 0..<2 { #expect(try await stage.get(url).source == .origin) }
        #expect(try await stage.holds(url) == false)
        #expect(stage.origin.count == 2)
        // The refusal is due to the URL, not to the method.
        let response = try await stage.cache.respond(to: CacheRequest(url: url))
        #expect(response.fields["Cache-Status"]?.contains("fwd=miss") == true)
        await stage.end()

        let willing = try await Stage { $0.caching.additionalSchemes = ["gopher"] }
        _ = try await willing.get(url)
        #expect(try await willing.get(url).source == .fresh)
        #expect(try await willing.get("GOPHER://example.com/a").source == .fresh)
        await willing.end()
    }

    // MARK: Refusals (H12)

    struct Refusal: CustomTestStringConvertible {
        var request: HeaderFields = [:]
        var method = HTTPMethod.get
        var status = 200
        var response: HeaderFields = ["Cache-Control": "max-age=60"]
        let reason: String
        var testDescription: String { reason }
    }

    static let refusals: [Refusal] = [
        .init(response: ["Cache-Control": "max-age=60, no-store"], reason: "response-no-store"),
        .init(response: ["Cache-Control": "max-age=60, private"], reason: "response-private"),
        .init(request: ["Cache-Control": "no-store"], reason: "request-no-store"),
        .init(request: ["Authorization": "Basic eA=="], reason: "request-authorized"),
        .init(method: .post, reason: "method-not-stored"),
        .init(
            response: ["Cache-Control": "max-age=60", "Vary": "*"],
            reason: "vary-on-everything"
        ),
        .init(
            response: [
                "Cache-Control": "max-age=60",
                "Vary": (0..<40).map { "f\($0)" }.joined(separator: ","),
            ],
            reason: "vary-too-long"
        ),
        .init(status: 206, reason: "partial-unrequested"),
        .init(status: 302, response: [:], reason: "not-fresh-nor-cacheable"),
        .init(response: [:], reason: "neither-fresh-nor-validatable"),
        .init(status: 429, reason: "status-never-stored"),
        .init(
            response: ["Set-Cookie": "a=b", "Last-Modified": Stage.date(-1_000)],
            reason: "set-cookie"
        ),
    ]

    @Test("H12: what may not be stored is not, and the reason is told", arguments: refusals)
    func refusalsNameTheirReason(row: Refusal) async throws {
        let stage = try await Stage(ScriptedOrigin(status: row.status, fields: row.response))
        let answer = try await stage.get(Stage.url, row.request, method: row.method)
        #expect(answer.status == row.status)
        #expect(answer.body == "hello")
        #expect(answer.info.refusal?.description == row.reason)
        #expect(answer.info.isStored == false)
        #expect(try await stage.holds() == false)
        #expect(await stage.cache.statistics.memory.entries == 0)
        if row.method == .get {
            #expect(answer.fields["Cache-Status"]?.contains("detail=\(row.reason)") == true)
            #expect(
                await stage.cache.statistics.refusals == [StoreRefusalReason(row.reason): 1]
            )
        }
        await stage.end()
    }

    // MARK: Size limits (H13)

    @Test("H13: a body that crosses the entry limit is delivered whole and not stored")
    func oversizedBodyIsDeliveredAndNotStored() async throws {
        let piece = String(repeating: "x", count: 10_000)
        let origin = ScriptedOrigin { _, _ in
            let body = ManualBody()
            for _ in 0..<20 { body.feed(piece) }
            body.finish()
            return OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: body.stream()
            )
        }
        // One shard of 1 MiB; an entry may take a tenth of it.
        let stage = try await Stage(origin) { $0.memory = .megabytes(1) }
        let answer = try await stage.get()
        #expect(answer.body.utf8.count == 200_000)
        #expect(try await stage.holds() == false)
        #expect(await stage.cache.statistics.refusals[StoreRefusalReason("too-large")] == 1)
        await stage.end()

        let roomy = try await Stage(origin) {
            $0.memory = MemoryOptions(capacity: .megabytes(1), maximumEntryShare: 0.5)
        }
        _ = try await roomy.get()
        #expect(try await roomy.get().body.utf8.count == 200_000)
        #expect(origin.count == 2)
        await roomy.end()
    }

    // MARK: Keys (H14)

    @Test("H14: the whole target URI is the key")
    func wholeTargetIsTheKey() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(fields: ["Cache-Control": "max-age=60"], body: request.url)
        }
        let stage = try await Stage(origin)
        let urls = [
            "http://example.com/a", "https://example.com/a", "http://example.com:8080/a",
            "http://example.com/a/", "http://example.com/A", "http://example.com/a?",
            "http://example.com/a?x=1", "http://example.com/a?x=1&y", "http://example.com/a?y&x=1",
            "http://example.org/a", "http://example.com./a", "http://example.com//a",
            "http://example.com/%61", "http://u@example.com/a", "http://example.com/./a",
        ]
        for url in urls { _ = try await stage.get(url) }
        for url in urls {
            let answer = try await stage.get(url)
            #expect(answer.body == url)
            #expect(answer.source == .fresh)
        }
        #expect(origin.count == urls.count)
        await stage.end()
    }

    @Test("H14: a hook, a request's own key and a partition change the key")
    func keysCanBeChosen() async throws {
        let origin = ScriptedOrigin { _, number in
            .whole(fields: ["Cache-Control": "max-age=60"], body: String(number))
        }
        let stage = try await Stage(origin) {
            $0.hooks.key = { request in
                guard let mark = request.url.firstRange(of: "&signature=") else { return nil }
                return String(request.url[..<mark.lowerBound])
            }
        }
        #expect(try await stage.get("http://a/x?p=1&signature=1").body == "1")
        #expect(try await stage.get("http://a/x?p=1&signature=2").body == "1")
        #expect(try await stage.get("http://a/x?p=2&signature=2").body == "2")
        #expect(try await stage.get("http://a/x?p=1").body == "3", "A URL is no name of a key")

        func get(_ options: RequestOptions) async throws -> String {
            let request = CacheRequest(url: "http://b/", options: options)
            return try await stage.send(request).body
        }
        #expect(try await get(RequestOptions(key: "mine")) == "4")
        #expect(try await get(RequestOptions(key: "mine")) == "4")
        #expect(try await get(RequestOptions()) == "5")
        #expect(try await get(RequestOptions(partition: "ada")) == "6")
        #expect(try await get(RequestOptions(partition: "bob")) == "7")
        #expect(try await get(RequestOptions(partition: "ada")) == "6")
        #expect(try await get(RequestOptions(partition: "ada", key: "mine")) == "8")
        await stage.end()
    }

    // MARK: Methods (H15)

    @Test("H15: GET and HEAD are answered from the store, other methods only under a key given")
    func storedMethods() async throws {
        for method in HTTPMethod.all {
            let stage = try await Stage()
            _ = try await stage.get()
            let answer = try await stage.get(method: method)
            let isStored = method == .get || method == .head
            #expect(answer.source == (isStored ? .fresh : .origin), "\(method)")
            #expect(answer.body == (method == .head ? "" : "hello"), "\(method)")
            #expect(answer.fields["Content-Length"] == "5", "\(method)")
            await stage.end()
        }
    }

    @Test(
        "H15: POST and QUERY answers are stored under an explicit key",
        arguments: [
            HTTPMethod.post, .query,
        ]
    )
    func keyedMethodsAreStored(method: HTTPMethod) async throws {
        let origin = ScriptedOrigin { request, _ in
            let question = try await request.body?.collect().text ?? ""
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "about \(question)")
        }
        let stage = try await Stage(origin)
        func ask(_ question: String) -> CacheRequest {
            CacheRequest(
                method: method,
                url: Stage.url,
                body: BodyStream(ByteChunk(question)),
                options: RequestOptions(key: "search:\(question)")
            )
        }
        for source in [CacheInfo.Source.origin, .fresh] {
            for question in ["cats", "dogs"] {
                let answer = try await stage.send(ask(question))
                #expect(answer.body == "about \(question)")
                #expect(answer.source == source)
            }
        }
        #expect(origin.count == 2)
        #expect(try await stage.holds() == false, "The GET of the same URL is something else")
        await stage.end()
    }

    @Test(
        "H15: a refresh of such an answer asks the same question, and removes nothing",
        arguments: [HTTPMethod.post, .query],
        [false, true]
    )
    func keyedMethodsAreRefreshedWithTheirContent(
        method: HTTPMethod,
        isRefused: Bool
    ) async throws {
        let origin = ScriptedOrigin { request, number in
            guard request.method != .get else {
                return .whole(fields: ["Cache-Control": "max-age=60"], body: "got")
            }
            let question = try await request.body?.collect().text ?? ""
            var fields: HeaderFields = [
                "Cache-Control": "max-age=1, stale-while-revalidate=60", "ETag": "\"1\"",
            ]
            if isRefused, number > 2 { fields["Set-Cookie"] = "a=b" }
            return .whole(fields: fields, body: "\(question) \(number)")
        }
        let stage = try await Stage(origin) { $0.mode = .shared }
        _ = try await stage.get()
        let ask = CacheRequest(
            method: method,
            url: Stage.url,
            body: BodyStream(ByteChunk("cats")),
            options: RequestOptions(key: "search:cats")
        )
        let first = try await stage.send(ask).body
        stage.clock.advance(seconds: 2)
        let stale = try await stage.send(ask)
        #expect(stale.body == first && stale.source == .stale)
        await stage.cache.waitUntilIdle()
        #expect(origin.count == 3)
        #expect(try await stage.holds(), "The refresh has changed nothing at the target")
        let second = try await stage.send(ask)
        #expect(second.source == (isRefused ? .stale : .fresh))
        #expect(second.body.hasPrefix("cats") && (second.body == first) == isRefused)
        await stage.end()
    }

    @Test(
        "H15: a stored answer to a POST is not validated: the POST is sent once, as it came",
        arguments: [HTTPMethod.post, .query]
    )
    func keyedPostHasNoConditionOfTheCache(method: HTTPMethod) async throws {
        let origin = ScriptedOrigin { request, number in
            if request.fields.contains("If-None-Match") {
                return OriginResponse(status: 304, fields: ["ETag": "\"\(number)\""])
            }
            return .whole(
                fields: ["Cache-Control": "max-age=1", "ETag": "\"\(number)\""],
                body: "\(number)"
            )
        }
        let stage = try await Stage(origin)
        let ask = CacheRequest(
            method: method,
            url: Stage.url,
            body: BodyStream(ByteChunk("cats")),
            options: RequestOptions(key: "search:cats")
        )
        _ = try await stage.send(ask)
        stage.clock.advance(seconds: 2)
        _ = try await stage.send(ask)
        let conditions = origin.requests.map { $0.fields["If-None-Match"] }
        // The 304 to a QUERY has another tag and confirms nothing: that request may be repeated.
        #expect(conditions == (method == .post ? [nil, nil] : [nil, "\"1\"", nil]))
        await stage.end()
    }

    @Test(
        "H15: the 412 to a condition of the cache reaches no client that has not asked for it",
        arguments: [HTTPMethod.get, .query]
    )
    func refusedConditionOfTheCacheIsLeftOut(method: HTTPMethod) async throws {
        let fields: HeaderFields = ["Cache-Control": "max-age=1", "ETag": "\"1\""]
        let origin = ScriptedOrigin { request, number in
            request.fields["If-None-Match"] == fields["ETag"]
                ? .whole(status: 412, body: "failed")
                : .whole(fields: fields, body: "\(number)")
        }
        let stage = try await Stage(origin)
        var ask = CacheRequest(
            method: method,
            url: Stage.url,
            options: RequestOptions(key: "search")
        )
        for body in ["1", "3", "5"] {
            let answer = try await stage.send(ask)
            #expect(answer.status == 200 && answer.body == body)
            stage.clock.advance(seconds: 2)
        }
        let conditions = origin.requests.map { $0.fields["If-None-Match"] }
        #expect(conditions == [nil, "\"1\"", nil, "\"1\"", nil])
        ask.fields["If-None-Match"] = "\"2\""
        #expect(try await stage.send(ask).status == 200)
        stage.clock.advance(seconds: 2)
        ask.fields["If-None-Match"] = "\"1\""
        #expect(try await stage.send(ask).status == (method == .query ? 412 : 304))
        await stage.end()
    }

    @Test(
        "H15: the 412 to a condition on such an answer has no content and announces none",
        arguments: [HTTPMethod.post, .query]
    )
    func keyedMethodsGetAnEmpty412(method: HTTPMethod) async throws {
        let fields: HeaderFields = [
            "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Encoding": "gzip",
        ]
        let stage = try await Stage(ScriptedOrigin(fields: fields))
        var ask = CacheRequest(
            method: method,
            url: Stage.url,
            body: BodyStream(ByteChunk("cats")),
            options: RequestOptions(key: "search:cats")
        )
        _ = try await stage.send(ask)
        ask.fields["If-None-Match"] = "\"1\""
        let answer = try await stage.send(ask)
        #expect(answer.status == 412 && answer.source == .fresh)
        #expect(answer.body.isEmpty)
        #expect(answer.fields.values("Content-Length") == ["0"])
        #expect(answer.fields["Content-Encoding"] == nil)
        #expect(stage.origin.count == 1)
        await stage.end()
    }

    // MARK: Structure of responses (H17, H22)

    @Test("H17: a Content-Length beside Transfer-Encoding is neither sent nor stored")
    func lengthBesideACodingIsLeftOut() async throws {
        let origin = ScriptedOrigin { _, _ in
            OriginResponse(
                status: 200,
                fields: [
                    "Cache-Control": "max-age=60", "Transfer-Encoding": "chunked",
                    "Content-Length": "99",
                ],
                body: BodyStream(ByteChunk("hello"))
            )
        }
        let stage = try await Stage(origin)
        for source in [CacheInfo.Source.origin, .fresh] {
            let answer = try await stage.get()
            #expect(answer.source == source && answer.body == "hello")
            #expect(answer.fields["Content-Length"] ?? "5" == "5", "\(source)")
            #expect(answer.fields["Transfer-Encoding"] == nil)
        }
        #expect(origin.count == 1)
        await stage.end()
    }

    @Test("H17: one head, the chunks, one end; on hits as on misses")
    func answersEndExactlyOnce() async throws {
        let origin = ScriptedOrigin { _, _ in
            let body = ManualBody()
            for piece in ["one", "two", "three"] { body.feed(piece) }
            body.finish()
            return OriginResponse(
                status: 200,
                fields: ["Cache-Control": "max-age=60"],
                body: body.stream()
            )
        }
        let heads = Mutex(0)
        let stage = try await Stage(origin) {
            $0.hooks.onEvent = { event in
                if case .answered = event { heads.withLock { $0 += 1 } }
            }
        }
        for round in 1...3 {
            let response = try await stage.cache.respond(to: CacheRequest(url: Stage.url))
            var iterator = response.body.makeAsyncIterator()
            var text = ""
            for _ in 0..<10 {
                guard let chunk = try await iterator.next() else { break }
                #expect(!chunk.isEmpty)
                text += chunk.text
            }
            #expect(text == "onetwothree")
            for _ in 0..<3 { #expect(try await iterator.next() == nil) }
            #expect(heads.withLock { $0 } == round)
            await stage.cache.waitUntilIdle()
        }
        #expect(origin.count == 1)
        await stage.end()
    }

    @Test("H22: 1xx heads pass on and are never stored")
    func informationalHeadsPassOn() async throws {
        let origin = ScriptedOrigin { request, _ in
            request.onInformational?(102, [:])
            request.onInformational?(103, ["Link": "</style.css>; rel=preload"])
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        let stage = try await Stage(origin)
        let seen = Mutex<[Int]>([])
        let options = RequestOptions { status, fields in
            seen.withLock { $0.append(status) }
            #expect(status != 103 || fields["Link"] == "</style.css>; rel=preload")
        }
        let request = CacheRequest(url: Stage.url, options: options)
        #expect(try await stage.send(request).status == 200)
        #expect(seen.withLock { $0 } == [102, 103])
        let hit = try await stage.send(request)
        #expect(hit.source == .fresh)
        #expect(hit.fields["Link"] == nil)
        #expect(seen.withLock { $0 } == [102, 103])
        #expect(await stage.cache.statistics.memory.entries == 1)
        await stage.end()
    }

    @Test("H22: an origin that gives a 1xx for its response misbehaves")
    func informationalFinalAnswerIsAnError() async throws {
        let stage = try await Stage(ScriptedOrigin(status: 103))
        await #expect {
            try await stage.get()
        } throws: {
            ($0 as? CacheError)?.code == .originMisbehaved
        }
        await stage.end()
    }
}
