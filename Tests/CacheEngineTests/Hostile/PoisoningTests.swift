import CacheEngine
import CacheTestSupport
import Testing

/// X8 to X16: attempts to poison the cache or to read the responses of others.
@Suite struct PoisoningTests {
    /// An origin that repeats the request in a storable response.
    static func mirror() -> ScriptedOrigin {
        ScriptedOrigin { request, _ in
            let body = try await request.body?.collect().text ?? ""
            let text = "\(request.method) \(request.url) \(body)"
            return .whole(fields: ["Cache-Control": "max-age=60"], body: text)
        }
    }

    // MARK: Keys (X8, X9)

    @Test("X8: fields that pretend another host, URL or method change neither key nor method")
    func pretendedTargetsAreNotHonoured() async throws {
        let stage = try await Stage(Self.mirror())
        let clean = try await stage.get()
        for name in [
            "X-Forwarded-Host", "X-Forwarded-Proto", "X-Forwarded-Port", "X-Forwarded-Prefix",
            "X-Original-URL", "X-Rewrite-URL", "X-HTTP-Method-Override", "X-HTTP-Method",
            "X-Method-Override", "Forwarded", "Host",
        ] {
            let answer = try await stage.get(Stage.url, [name: "evil.example"])
            #expect(answer.source == .fresh, "\(name)")
            #expect(answer.body == clean.body, "\(name)")
        }
        let override = try await stage.get(
            "http://example.com/b",
            ["X-HTTP-Method-Override": "POST"]
        )
        #expect(override.body == "GET http://example.com/b ")
        #expect(stage.origin.count == 2)
        await stage.end()
    }

    @Test("X8: host, scheme and port are part of the key; the case of the host is not")
    func authorityIsPartOfTheKey() async throws {
        let stage = try await Stage(Self.mirror())
        let urls = [
            "http://a.example/", "https://a.example/", "http://a.example:81/",
            "http://a.example./", "http://b.example/", "http://a.example@b.example/",
        ]
        for url in urls { _ = try await stage.get(url) }
        for url in urls { #expect(try await stage.get(url).body == "GET \(url) ") }
        #expect(try await stage.get("HTTP://A.EXAMPLE:80").source == .fresh)
        #expect(stage.origin.count == urls.count)
        await stage.end()
    }

    @Test(
        "X9: the answer to a GET with content is not stored under the bare key, nor taken from it"
    )
    func contentOfAGetIsNotUnkeyed() async throws {
        let stage = try await Stage(Self.mirror())
        let fat = CacheRequest(url: Stage.url, body: BodyStream(ByteChunk("evil")))
        #expect(try await stage.send(fat).body == "GET \(Stage.url) evil")
        #expect(try await stage.holds() == false)
        #expect(try await stage.get().body == "GET \(Stage.url) ")
        let again = CacheRequest(url: Stage.url, body: BodyStream(ByteChunk("other")))
        #expect(try await stage.send(again).body == "GET \(Stage.url) other")
        let empty = CacheRequest(url: Stage.url, body: .empty)
        #expect(try await stage.send(empty).source == .fresh)
        await stage.end()
    }

    @Test("X9, X15: the key cloaks no parameter and normalises no path")
    func keyIgnoresNoParameterAndNormalisesNoPath() async throws {
        let stage = try await Stage(Self.mirror())
        let urls = [
            "http://h/account", "http://h/account/x.css", "http://h/account;x.css",
            "http://h/account%2Fx.css", "http://h/account/%2e%2e/x.css", "http://h/x.css",
            "http://h/account/../x.css", "http://h/account//x.css", "http://h/account/./x.css",
            "http://h/account%3Fx.css", "http://h/account?x.css", "http://h/account%23x.css",
            "http://h/account%00x.css", "http://h/account\\x.css", "http://h/Account",
            "http://h/account?a=1&b=2", "http://h/account?b=2&a=1", "http://h/account?a=1;b=2",
            "http://h/account?a=1&a=1", "http://h/account?a=1&b=2&", "http://h/account?a[]=1",
        ]
        for url in urls { _ = try await stage.get(url) }
        for url in urls {
            let answer = try await stage.get(url)
            #expect(answer.body == "GET \(url) ")
            #expect(answer.source == .fresh)
        }
        #expect(stage.origin.count == urls.count)
        await stage.end()
    }

    @Test("X15: an extension decides nothing")
    func extensionsDecideNothing() async throws {
        for directives in ["private, max-age=60", "no-store", "max-age=0, no-store"] {
            let stage = try await Stage(ScriptedOrigin(fields: ["Cache-Control": directives]))
            for url in ["http://h/account/x.css", "http://h/account/x.js?v=1", "http://h/a.jpg"] {
                _ = try await stage.get(url)
                #expect(try await stage.holds(url) == false)
            }
            await stage.end()
        }
        let silent = try await Stage(ScriptedOrigin(fields: ["Content-Type": "text/css"]))
        _ = try await silent.get("http://h/x.css")
        #expect(try await silent.holds("http://h/x.css") == false)
        await silent.end()
    }

    // MARK: Refusals and errors (X10, X11)

    @Test(
        "X10: refusals that a crafted request provokes are stored only when explicitly fresh",
        arguments: [400, 403, 405, 413, 431, 501]
    )
    func provokedRefusalsAreNotStored(status: Int) async throws {
        let guessable: HeaderFields = ["Last-Modified": Stage.date(-100_000), "ETag": "\"1\""]
        let rows: [(HeaderFields, Bool)] = [
            (guessable, false), ([:], false), (["Cache-Control": "public"], false),
            (["Cache-Control": "max-age=60"], status != 431),
        ]
        for (fields, mayBeStored) in rows {
            let stage = try await Stage(ScriptedOrigin(status: status, fields: fields))
            let odd: HeaderFields = ["X-Oversized": String(repeating: "A", count: 20_000)]
            #expect(try await stage.get(Stage.url, odd).status == status)
            #expect(try await stage.holds() == mayBeStored, "\(status) \(fields.pairs)")
            stage.origin.follow { _, _ in .whole(fields: ["Cache-Control": "max-age=60"]) }
            #expect(try await stage.get().status == (mayBeStored ? status : 200))
            await stage.end()
        }
    }

    @Test(
        "X11: answers to one client's own request are not shared with those who wait",
        arguments: [400, 401, 406, 407, 412, 416, 417]
    )
    func refusalOfOneRequestIsNotShared(status: Int) async throws {
        let gate = ManualBody()
        let origin = ScriptedOrigin { request, number in
            if number == 1 {
                _ = try await gate.next()
                return .whole(
                    status: status,
                    fields: ["Cache-Control": "max-age=60"],
                    body: "yours"
                )
            }
            return .whole(fields: ["Cache-Control": "max-age=60"], body: "hello")
        }
        let stage = try await Stage(origin)
        let cache = stage.cache
        let tasks = (0..<16).map { _ in
            Task { try await cache.respond(to: CacheRequest(url: Stage.url)).status }
        }
        for _ in 0..<5_000 { await Task.yield() }
        gate.feed("go")
        var statuses: [Int: Int] = [:]
        for task in tasks { statuses[try await task.value, default: 0] += 1 }
        #expect(statuses[status] == 1)
        await cache.waitUntilIdle()
        await stage.end()
    }

    // MARK: Redirects, parts, HEAD, truncation (X12, X13)

    @Test("X12: a reflected redirect without freshness is not stored")
    func reflectedRedirectsAreNotStored() async throws {
        for status in [302, 303, 307] {
            let stage = try await Stage(
                ScriptedOrigin(status: status, fields: ["Location": "http://evil.example/"])
            )
            #expect(try await stage.get().status == status)
            #expect(try await stage.holds() == false)
            await stage.end()
        }
    }

    @Test("X12: a part nobody asked for is not stored, least of all as the whole")
    func unrequestedPartIsNotStored() async throws {
        let stage = try await Stage(
            ScriptedOrigin(
                status: 206,
                fields: [
                    "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": "bytes 0-4/26",
                ]
            )
        )
        #expect(try await stage.get().status == 206)
        #expect(try await stage.holds() == false)
        await stage.end()
    }

    @Test("X12: a part that lies about its range is not stored")
    func lyingPartIsNotStored() async throws {
        for range in [
            "bytes 0-9/26", "bytes 0-3/26", "bytes 4-0/26", "bytes 0-4/3", "lines 0-4/26",
        ] {
            let stage = try await Stage(
                ScriptedOrigin(
                    status: 206,
                    fields: [
                        "Cache-Control": "max-age=60", "ETag": "\"1\"", "Content-Range": range,
                    ]
                )
            )
            let wish: HeaderFields = ["Range": "bytes=0-4"]
            _ = try await stage.get(Stage.url, wish)
            #expect(try await stage.holds(Stage.url, wish) == false, "\(range)")
            #expect(try await stage.holds() == false, "\(range)")
            await stage.end()
        }
    }

    @Test("X12: a 304 cannot change what selects the variant")
    func confirmationCannotChangeVary() async throws {
        let origin = ScriptedOrigin { request, _ in
            if request.fields.contains("If-None-Match") {
                return OriginResponse(
                    status: 304,
                    fields: ["ETag": "\"1\"", "Vary": "X-Evil", "Cache-Control": "max-age=60"]
                )
            }
            return .whole(
                fields: ["Cache-Control": "max-age=60", "ETag": "\"1\"", "Vary": "Accept"],
                body: request.fields["Accept"] ?? "-"
            )
        }
        let stage = try await Stage(origin)
        _ = try await stage.get(Stage.url, ["Accept": "a/a"])
        stage.clock.advance(seconds: 61)
        #expect(try await stage.get(Stage.url, ["Accept": "a/a"]).body == "a/a")
        #expect(try await stage.get(Stage.url, ["Accept": "b/b"]).body == "b/b")
        #expect(try await stage.get(Stage.url, ["Accept": "a/a"]).fields["Vary"] == "Accept")
        await stage.end()
    }

    @Test("X13: a HEAD answer never replaces the body of a GET")
    func headNeverReplacesABody() async throws {
        let stage = try await Stage(Resource())
        #expect(try await stage.get(method: .head).body.isEmpty)
        #expect(try await stage.holds() == false)
        #expect(try await stage.get().body == "one")
        #expect(try await stage.get(method: .head).source == .fresh)
        #expect(try await stage.get().body == "one")
        await stage.end()
    }

    @Test("X13: a truncated body is an error and is not stored; surplus is cut and not stored")
    func truncatedAndOverlongBodiesAreNotStored() async throws {
        for (announced, isComplete) in [("10", false), ("3", true)] {
            let stage = try await Stage(
                ScriptedOrigin(fields: ["Cache-Control": "max-age=60", "Content-Length": announced])
            )
            if isComplete {
                #expect(try await stage.get().body == "hel")
            } else {
                await #expect {
                    try await stage.get()
                } throws: {
                    ($0 as? CacheError)?.code == .bodyTruncated
                }
            }
            await stage.cache.waitUntilIdle()
            #expect(try await stage.holds() == false)
            await stage.end()
        }
    }

    // MARK: Credentials (X16)

    @Test("X16: what one user's credentials brought is for that user alone")
    func credentialsAreNotShared() async throws {
        for name in ["Authorization", "Proxy-Authorization", "Cookie"] {
            let origin = ScriptedOrigin { request, _ in
                .whole(
                    fields: ["Cache-Control": "private, max-age=60"],
                    body: request.fields[name] ?? "nobody"
                )
            }
            let stage = try await Stage(origin)
            #expect(try await stage.get(Stage.url, [name: "ada"]).body == "ada")
            #expect(try await stage.get(Stage.url, [name: "bob"]).body == "bob")
            #expect(try await stage.get().body == "nobody")
            await stage.end()
        }
    }

    @Test(
        "X16: a page that cookies select is for one user, though its origin states a lifetime of 0",
        arguments: [
            ["Cache-Control": "max-age=0"], ["Cache-Control": "s-maxage=0"], ["Expires": "0"],
            ["Cache-Control": "no-cache, max-age=60"], ["Pragma": "no-cache", "Expires": "0"],
        ] as [HeaderFields]
    )
    func lifetimeOfZeroSharesNoPage(fields: HeaderFields) async throws {
        let origin = ScriptedOrigin { request, _ in
            var fields = fields
            let user = request.fields["Cookie"] ?? "nobody"
            fields["ETag"] = "\"\(user)\""
            return .whole(fields: fields, body: user)
        }
        let stage = try await Stage(origin) { $0.caching.staleWhileRevalidate = .seconds(30) }
        #expect(try await stage.get(Stage.url, ["Cookie": "ada"]).body == "ada")
        #expect(try await stage.get(Stage.url, ["Cookie": "bob"]).body == "bob")
        let wish: HeaderFields = ["Cache-Control": "max-stale"]
        #expect(try await stage.get(Stage.url, wish).body == "nobody")
        await stage.end()
    }

    @Test("X16: partitions keep users apart in one cache")
    func partitionsKeepUsersApart() async throws {
        let origin = ScriptedOrigin { request, _ in
            .whole(
                fields: ["Cache-Control": "private, max-age=60"],
                body: request.fields["Authorization"] ?? "nobody"
            )
        }
        let stage = try await Stage(origin) { $0.mode = .private }
        func get(_ user: String) async throws -> Answer {
            try await stage.send(
                CacheRequest(
                    url: Stage.url,
                    fields: ["Authorization": user],
                    options: RequestOptions(partition: user)
                )
            )
        }
        for source in [CacheInfo.Source.origin, .fresh] {
            for user in ["ada", "bob"] {
                let answer = try await get(user)
                #expect(answer.body == user)
                #expect(answer.source == source)
            }
        }
        await stage.end()
    }
}
