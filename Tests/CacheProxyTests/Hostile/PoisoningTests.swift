import Testing

@testable import CacheProxy

/// Attempts to deliver one client's response to another client (X8 to X17).
@Suite struct PoisoningTests {
    static let script: WireOrigin.Script = { request, socket in
        try socket.answer(
            200,
            ["Cache-Control: max-age=60"],
            "\(request["Host"] ?? "")\(request.target)"
        )
    }

    /// X8.
    @Test func hostsAndPortsAreKeptApart() async throws {
        try await withProxy(Self.script) { proxy, origin async throws in
            for host in ["a.test", "b.test", "a.test:81", "a.test."] {
                #expect(try await proxy.request("/", ["Host: \(host)"]).text == "\(host)/")
            }
            #expect(origin.count == 4)
            #expect(try await proxy.request("/", ["Host: A.TEST:80"]).text == "a.test/")
            #expect(try await proxy.request("http://a.test/", ["Host: evil"]).text == "a.test/")
            #expect(origin.count == 4)
        }
    }

    /// X8: the request that fills a key writes its host in another way than those that it serves.
    @Test(arguments: [
        ("/", "a.test:80"), ("/", "A.test"), ("/", "a.test:"), ("/", "A.TEST:80"),
        ("http://a.test:80/", "x"), ("HTTP://A.test/", "x"),
    ])
    func formsOfAHostThatShareAKeyAreOneForTheOrigin(_ row: (target: String, host: String))
        async throws
    {
        try await withProxy(
            { request, socket in
                let seen = ["Host", "X-Forwarded-Host", "Forwarded"].map { request[$0] ?? "-" }
                return try socket.answer(
                    200,
                    ["Cache-Control: max-age=60"],
                    seen.joined(separator: " ")
                )
            },
            configure: { $0.forwarded = .add }
        ) { proxy, origin async throws in
            let first = try await proxy.request(row.target, ["Host: \(row.host)"])
            #expect(first.text == "a.test a.test for=127.0.0.1;host=a.test;proto=http")
            #expect(try await proxy.request("/", ["Host: a.test"]).text == first.text)
            #expect(origin.count == 1)
        }
    }

    @Test func fieldsThatClaimAnotherTargetChangeNothing() async throws {
        try await withProxy(Self.script) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for field in [
                "X-Forwarded-Host: evil", "X-Host: evil", "X-Original-URL: /evil",
                "X-Rewrite-URL: /e",
                "X-Forwarded-Proto: https", "X-Forwarded-Port: 1", "X-HTTP-Method-Override: POST",
                "Forwarded: host=evil",
            ] {
                let response = try await proxy.request("/", [field])
                #expect(response.isHit && response.text == "\(ProxyHarness.host)/", "\(field)")
            }
            #expect(origin.count == 1)
        }
    }

    /// X9, X15.
    @Test func targetsThatLookAlikeAreKeptApart() async throws {
        let targets = [
            "/a?x=1&y=2", "/a?x=1;y=2", "/a?y=2&x=1", "/a?x=1&x=1&y=2", "/a", "/a/", "/A", "//a",
            "/a%2f",
            "/a/../a", "/./a", "/%61", "/a;x.css", "/a/x.css", "/a%3Fx=1", "/a%23", "/a?", "/a%2F",
            "/a%00.css", "/b/..%2fa",
        ]
        try await withProxy(Self.script) { proxy, origin async throws in
            for _ in 0..<2 {
                for target in targets {
                    #expect(try await proxy.request(target).text == ProxyHarness.host + target)
                }
            }
            #expect(origin.count == targets.count)
        }
    }

    /// X15: an origin compares the field with the one value that its clients send.
    @Test(arguments: [
        ["X-Mode: 1,"], ["X-Mode: ,1"], ["X-Mode: 1", "X-Mode:"], ["X-Mode:", "X-Mode: 1"],
        ["X-Mode: 1 ,\t,"], ["X-Mode: \"1\""], ["X-Mode: 1;q=1"], ["X-Mode: 1", "X-Mode: 1"],
    ])
    func valueThatTheOriginTellsApartIsAVariantOfItsOwn(lines: [String]) async throws {
        try await withProxy({ request, socket in
            let sent = request.fields.filter { $0.name.lowercased() == "x-mode" }.map(\.value)
            return try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: X-Mode"],
                sent == ["1"] ? "part" : "whole"
            )
        }) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["X-Mode: 1"]).text == "part")
            let reload = lines + ["Cache-Control: no-cache"]
            #expect(try await proxy.request("/", reload).text == "whole")
            let response = try await proxy.request("/", ["X-Mode: 1"])
            #expect(response.text == "part" && response.isHit)
            #expect(origin.count == 2)
        }
    }

    @Test func partsOfAKeyDoNotRunTogether() async throws {
        try await withProxy(Self.script) { proxy, origin async throws in
            #expect(try await proxy.request("/b/c", ["Host: a"]).text == "a/b/c")
            #expect(try await proxy.request("/c", ["Host: a"]).text == "a/c")
            #expect(try await proxy.request("/a/b", ["Host: a"]).text == "a/a/b")
            #expect(origin.count == 3)
        }
    }

    @Test func nothingIsDecidedByExtension() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["Cache-Control: private"], "\(request.number)")
        }) { proxy, origin async throws in
            for _ in 0..<2 { _ = try await proxy.request("/account/x.css") }
            #expect(origin.count == 2)
        }
    }

    /// X10.
    @Test func errorsThatAClientCanProvokeAreNotStored() async throws {
        for status in [400, 403, 405, 413, 431, 501] {
            try await withProxy({ request, socket in
                if request["X-Odd"] != nil { return try socket.answer(status, [], "no") }
                return try socket.answer(200, ["Cache-Control: max-age=60"], "yes")
            }) { proxy, _ async throws in
                let odd =
                    "X-Odd: \(String(repeating: "\u{7}a", count: 0))\(String(repeating: "a", count: 4_000))"
                #expect(try await proxy.request("/", [odd]).status == status)
                #expect(try await proxy.request("/").text == "yes")
            }
        }
    }

    /// X11.
    @Test func refusalsOfOneClientAreNotSharedWithWaiters() async throws {
        for status in [400, 401, 406, 407, 416] {
            try await withProxy({ request, socket in
                if request["X-Good"] == nil { return try socket.answer(status, [], "no") }
                return try socket.answer(200, ["Cache-Control: no-store"], "yes")
            }) { proxy, _ async throws in
                try await withThrowingTaskGroup(of: Bool.self) { group in
                    for number in 0..<20 {
                        group.addTask {
                            let isGood = number % 2 == 1
                            let response = try await proxy.request("/", isGood ? ["X-Good: 1"] : [])
                            return (response.text == "yes") == isGood
                        }
                    }
                    for try await isRight in group { #expect(isRight, "\(status)") }
                }
            }
        }
    }

    /// X12, X16.
    @Test func personalAnswersAreNotShared() async throws {
        for fields in [
            ["Set-Cookie: id=1"], ["Set-Cookie: id=1", "Cache-Control: max-age=60"],
            ["Cache-Control: private"],
            ["Cache-Control: private, max-age=60"],
            ["Cache-Control: no-store"], ["Cache-Control: no-cache"],
        ] {
            try await withProxy({ request, socket in
                try socket.answer(200, fields, "\(request.number)")
            }) { proxy, origin async throws in
                _ = try await proxy.request("/")
                #expect(try await proxy.request("/").text == "1", "\(fields)")
            }
        }
    }

    @Test func fieldsMarkedPrivateAreNotShared() async throws {
        for directive in ["private=\"X-Me\"", "no-cache=\"X-Me\""] {
            try await withProxy({ request, socket in
                try socket.answer(
                    200,
                    ["Cache-Control: \(directive), max-age=60", "X-Me: \(request.number)"],
                    "x"
                )
            }) { proxy, origin async throws in
                #expect(try await proxy.request("/")["X-Me"] == "0")
                let second = try await proxy.request("/")["X-Me"]
                #expect(second == nil || second == "1", "\(directive)")
            }
        }
    }

    @Test func credentialsForProxiesGoNoFurther() async throws {
        try await withProxy(Self.script) { proxy, origin async throws in
            _ = try await proxy.request("/", ["Proxy-Authorization: Basic eA=="])
            #expect(origin.requests.first?["Proxy-Authorization"] == nil)
        }
    }

    /// CGI, WSGI and Rack know both names as `HTTP_ACCEPT_LANGUAGE`; `Vary` names only one.
    @Test func namesThatAnOriginTakesForOthersSelectNothing() async throws {
        try await withProxy({ request, socket in
            let language = request["Accept-Language"] ?? request["Accept_Language"]
            return try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: Accept-Language"],
                language ?? "-"
            )
        }) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["Accept_Language: xx"]).text == "-")
            #expect(try await proxy.request("/").text == "-")
            #expect(try await proxy.request("/", ["Accept-Language: fr"]).text == "fr")
            #expect(origin.count == 2)
        }
    }

    /// X13.
    @Test func headDoesNotReplaceTheBodyOfAGet() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "ETag: \"a\""],
                "body",
                isHead: request.method == "HEAD"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            _ = try await proxy.request("/", ["Cache-Control: no-cache"], method: "HEAD")
            #expect(try await proxy.request("/").text == "body")
        }
    }

    /// X14.
    @Test func varyThatAppearsIsObeyed() async throws {
        try await withProxy({ request, socket in
            let vary = request.number == 0 ? [] : ["Vary: X-Foo"]
            return try socket.answer(
                200,
                ["Cache-Control: max-age=5"] + vary,
                "\(request["X-Foo"] ?? "-")"
            )
        }) { proxy, _ async throws in
            #expect(try await proxy.request("/", ["X-Foo: 1"]).text == "1")
            proxy.advance(6)
            #expect(try await proxy.request("/", ["X-Foo: 2"]).text == "2")
            #expect(try await proxy.request("/", ["X-Foo: 3"]).text == "3")
            #expect(try await proxy.request("/", ["X-Foo: 2"]).text == "2")
        }
    }

    @Test func endlessVaryListIsHarmless() async throws {
        let names = (0..<400).map { "X-\($0)" }.joined(separator: ", ")
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: \(names)"],
                "\(request["X-399"] ?? "-")"
            )
        }) { proxy, _ async throws in
            #expect(try await proxy.request("/", ["X-399: 1"]).text == "1")
            #expect(try await proxy.request("/", ["X-399: 2"]).text == "2")
        }
    }
}
