import CacheEngine
import Testing

@testable import CacheProxy

/// The effect of command-line options on the wire.
@Suite struct OptionTests {
    static func read(_ options: [String]) throws -> ProxyConfiguration {
        let order = try ConfigurationReader.read(["--origin", "http://unused"] + options)
        guard case .run(let read) = order else { throw OtherOrder() }
        return read
    }

    static func withOptions(
        _ options: [String],
        _ script: @escaping WireOrigin.Script,
        _ body: (ProxyHarness, WireOrigin) async throws -> Void
    ) async throws {
        let read = try read(options)
        try await withProxy(
            script,
            configure: { configuration in
                let usual = configuration
                configuration = read
                configuration.listen = usual.listen
                configuration.origins = usual.origins
                configuration.name = usual.name
                configuration.memory = usual.memory
                configuration.drainTime = usual.drainTime
            },
            body
        )
    }

    // MARK: --drain-timeout

    /// The shortest time is rounded to none.
    @Test(arguments: ["1e-300", "0.0005", "86400"])
    func anyDrainTimeOfTheOptionIsTaken(text: String) async throws {
        let read = try Self.read(["--drain-timeout", text, "--idle-timeout", "86400"])
        try await withProxy(
            Self.tagged,
            configure: {
                $0.drainTime = read.drainTime
                $0.idleTime = read.idleTime
            }
        ) { proxy, _ async throws in
            #expect(try await proxy.request("/").text == "0")
        }
    }

    @Test(arguments: [("2.3", 2_300), ("0.001", 1), ("1.005", 1_005), ("86400", 86_400_000)])
    func fractionOfASecondIsWholeMilliseconds(_ row: (text: String, milliseconds: Int64)) throws {
        let read = try Self.read(["--send-timeout", row.text])
        #expect(read.sendTime.milliseconds == row.milliseconds)
    }

    // MARK: --tags

    static let tagged: WireOrigin.Script = { request, socket in
        try socket.answer(
            200,
            ["Cache-Control: max-age=60", "Cache-Tag: a, b", "Surrogate-Key: c d", "X-Kept: 1"],
            "\(request.number)"
        )
    }

    @Test(arguments: [([String](), false), (["--tags", "strip"], false), (["--tags=pass"], true)])
    func tagsReachClientsOnlyWhereTheyMay(_ row: ([String], Bool)) async throws {
        try await Self.withOptions(row.0, Self.tagged) { proxy, origin async throws in
            for isHit in [false, true] {
                let response = try await proxy.request("/")
                #expect(response.isHit == isHit && response["X-Kept"] == "1")
                #expect((response["Cache-Tag"] == "a, b") == row.1)
                #expect((response["Surrogate-Key"] == "c d") == row.1)
            }
            // The tags are stripped from responses to clients, but they are indexed.
            try await proxy.service.cache.purge(tag: "d")
            #expect(try await proxy.request("/").text == "1")
        }
    }

    @Test func tagsAreTakenOverWhenTheConfigurationIsReadAgain() async throws {
        try await Self.withOptions([], Self.tagged) { proxy, origin async throws in
            #expect(try await proxy.request("/")["Cache-Tag"] == nil)
            var new = try Self.read(["--tags", "pass"])
            new.origins = ExhaustionTests.pointing(at: origin.port).origins
            #expect(try proxy.service.reload(new).contains("tags") == false)
            let client = try proxy.client()
            let get = "GET / HTTP/1.1\r\nHost: \(ProxyHarness.host)\r\n\r\n"
            #expect(try await client.exchange(get)["Cache-Tag"] == "a, b")
        }
    }

    // MARK: --set-cookie

    @Test(arguments: [
        ([String](), 2, true), (["--set-cookie", "pass"], 2, true),
        (["--set-cookie", "strip"], 1, false), (["--set-cookie", "store"], 1, true),
    ])
    func cookiesAreStoredOnlyWhereTheyMay(_ row: ([String], Int, Bool)) async throws {
        let script: WireOrigin.Script = { request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Set-Cookie: id=\(request.number)"],
                "body"
            )
        }
        try await Self.withOptions(row.0, script) { proxy, origin async throws in
            _ = try await proxy.request("/")
            let second = try await proxy.request("/")
            #expect(origin.count == row.1)
            #expect((second["Set-Cookie"] != nil) == row.2)
        }
    }

    // MARK: --grace, --ignore-client-no-cache

    @Test func graceServesStaleAnswersWhileTheyAreRefreshed() async throws {
        let script: WireOrigin.Script = { request, socket in
            try socket.answer(200, ["Cache-Control: max-age=1"], "\(request.number)")
        }
        try await Self.withOptions(["--grace", "30"], script) { proxy, origin async throws in
            _ = try await proxy.request("/")
            proxy.advance(10)
            #expect(try await proxy.request("/").text == "0")
            #expect(await eventually { origin.count == 2 })
            await proxy.service.cache.waitUntilIdle()  // The origin's response is stored now.
            proxy.advance(40)
            #expect(try await proxy.request("/").text == "2")
        }
    }

    @Test func graceCoversErrorsOfTheOrigin() async throws {
        let script: WireOrigin.Script = { request, socket in
            if request.number > 0 { return try socket.answer(503, [], "down") }
            return try socket.answer(200, ["Cache-Control: max-age=1"], "good")
        }
        try await Self.withOptions(["--grace", "30"], script) { proxy, _ async throws in
            _ = try await proxy.request("/")
            for seconds in [10, 10, 5] {
                proxy.advance(Int64(seconds))
                let response = try await proxy.request("/")
                #expect(response.status == 200 && response.text == "good")
            }
            proxy.advance(30)
            #expect(try await proxy.request("/").status == 503)
        }
    }

    @Test(arguments: [([String](), 1), (["--condition-miss", "forward"], 3)])
    func conditionalRequestsFillTheCacheOrAreForwarded(_ row: ([String], Int)) async throws {
        let script: WireOrigin.Script = { request, socket in
            let isKnown = request["If-None-Match"] == "\"a\""
            return try socket.answer(
                isKnown ? 304 : 200,
                ["Cache-Control: max-age=60", "ETag: \"a\""],
                isKnown ? "" : "body"
            )
        }
        try await Self.withOptions(row.0, script) { proxy, origin async throws in
            for _ in 0..<2 {
                let response = try await proxy.request("/", ["If-None-Match: \"a\""])
                #expect(response.status == 304 && response["ETag"] == "\"a\"")
            }
            #expect(try await proxy.request("/").text == "body")
            #expect(origin.count == row.1)
        }
    }

    @Test func reloadsOfClientsCanBeIgnored() async throws {
        for (options, count) in [([], 3), (["--ignore-client-no-cache"], 1)] {
            try await Self.withOptions(options, PoisoningTests.script) {
                proxy,
                origin async throws in
                _ = try await proxy.request("/")
                _ = try await proxy.request("/", ["Cache-Control: no-cache"])
                _ = try await proxy.request("/", ["Cache-Control: max-age=0"])
                _ = try await proxy.request("/", ["Pragma: no-cache"])
                #expect(origin.count == count, "\(options)")
            }
        }
    }

    @Test func flagNeedsNoValueInAFile() throws {
        for (line, isSet) in [
            ("ignore-client-no-cache", true), ("ignore-client-no-cache on", true),
            ("ignore-client-no-cache = off", false),
        ] {
            let path = try ConfigurationReaderTests.file("tags = pass\n\(line)\ngrace 5\n")
            defer { ConfigurationReaderTests.remove(path) }
            let read = try Self.read(["--config", path])
            #expect(String(describing: read).contains("ignoresClientCacheControl: \(isSet)"))
        }
        let path = try ConfigurationReaderTests.file("ignore-client-no-cache perhaps\n")
        defer { ConfigurationReaderTests.remove(path) }
        #expect(throws: ConfigurationError.self) { try Self.read(["--config", path]) }
    }

    @Test(arguments: [
        (["--ignore-client-no-cache"], true), (["--ignore-client-no-cache", "on"], true),
        (["--ignore-client-no-cache", "off"], false), (["--ignore-client-no-cache=on"], true),
        (["--ignore-client-no-cache=off"], false),
    ])
    func flagMayHaveAValueOnTheCommandLine(_ row: ([String], Bool)) throws {
        for others in [[], ["--grace", "5"]] {
            let read = try Self.read(row.0 + others)
            #expect(read.ignoresClientCacheControl == row.1)
            #expect((read.grace == .seconds(5)) != others.isEmpty)
        }
    }

    @Test func flagOnTheCommandLineGoesBeforeTheFile() throws {
        for (line, words, isSet) in [
            ("ignore-client-no-cache", ["off"], false),
            ("ignore-client-no-cache on", ["off"], false),
            ("ignore-client-no-cache off", [], true), ("ignore-client-no-cache off", ["on"], true),
        ] {
            let path = try ConfigurationReaderTests.file("\(line)\n")
            defer { ConfigurationReaderTests.remove(path) }
            let options = ["--config", path, "--ignore-client-no-cache"] + words
            #expect(try Self.read(options).ignoresClientCacheControl == isSet)
        }
    }

    // MARK: --forwarded

    static let claims = [
        "X-Forwarded-For: 9.9.9.9", "X-Forwarded-Proto: https", "X-Forwarded-Host: evil",
        "Forwarded: for=9.9.9.9;proto=https",
    ]

    static func forwarded(_ options: [String], _ fields: [String]) async throws -> [String?] {
        var seen: [String?] = []
        try await withOptions(options, PoisoningTests.script) { proxy, origin async throws in
            _ = try await proxy.request("/", fields + ["Host: a.test:81"])
            let request = try #require(origin.requests.first)
            seen = ["For", "Proto", "Host"].map { request["X-Forwarded-\($0)"] }
            seen.append(request["Forwarded"])
            #expect(request["Host"] == "a.test:81")
        }
        return seen
    }

    @Test func clientsAreNamedToTheOriginWhereThatIsAskedFor() async throws {
        let own = "for=127.0.0.1;host=\"a.test:81\";proto=http"
        #expect(try await Self.forwarded([], []) == [nil, nil, nil, nil])
        #expect(
            try await Self.forwarded([], Self.claims)
                == ["9.9.9.9", "https", "evil", "for=9.9.9.9;proto=https"]
        )
        #expect(
            try await Self.forwarded(["--forwarded", "add"], [])
                == ["127.0.0.1", "http", "a.test:81", own]
        )
        #expect(
            try await Self.forwarded(["--forwarded", "add"], Self.claims)
                == ["9.9.9.9, 127.0.0.1", "https", "evil", "for=9.9.9.9;proto=https, \(own)"]
        )
        #expect(
            try await Self.forwarded(["--forwarded", "replace"], Self.claims)
                == ["127.0.0.1", "http", "a.test:81", own]
        )
    }

    @Test func connectionFieldDoesNotRemoveWhatTheProxyAdds() async throws {
        let fields = ["Connection: X-Forwarded-For, Forwarded"]
        let seen = try await Self.forwarded(["--forwarded", "replace"], fields)
        #expect(seen[0] == "127.0.0.1" && seen[3] != nil)
    }

    /// A client whose list went through a terminator would get its own response stored for all.
    @Test(arguments: ["off", "add"])
    func connectionFieldDoesNotRemoveWhatAProxyInFrontAdded(option: String) async throws {
        let names = "X-Forwarded-For, X-Forwarded-Proto, X-Forwarded-Host, Forwarded"
        let options = ["--forwarded", option]
        let seen = try await Self.forwarded(options, ["Connection: \(names)"] + Self.claims)
        let wanted = try await Self.forwarded(options, Self.claims)
        #expect(seen == wanted)
        #expect(seen[1] == "https" && seen[0]?.hasPrefix("9.9.9.9") == true)
    }

    /// CGI, WSGI and Rack give these names the variables of the proxy's own fields.
    @Test func claimWithAnotherSignForTheHyphenIsReplacedToo() async throws {
        let names = [
            "X_Forwarded_Host", "X-Forwarded_Prefix", "x_forwarded-for", "X.Forwarded.Port",
        ]
        let others = ["X_Forward", "X-Forwarded", "X-Forwardedx-For", "X_Real_IP"]
        let fields = (names + others).map { "\($0): 9.9.9.9" }
        let options = ["--forwarded", "replace", "--field-names", "any"]
        try await Self.withOptions(options, PoisoningTests.script) {
            proxy,
            origin async throws in
            _ = try await proxy.request("/", fields)
            let request = try #require(origin.requests.first)
            for name in names { #expect(request[name] == nil, "\(name)") }
            for name in others { #expect(request[name] == "9.9.9.9", "\(name)") }
        }
    }

    @Test func variantsAreChosenByWhatTheOriginSaw() async throws {
        let script: WireOrigin.Script = { request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: X-Forwarded-Proto"],
                request["X-Forwarded-Proto"] ?? "-"
            )
        }
        try await Self.withOptions(["--forwarded", "replace"], script) {
            proxy,
            origin async throws in
            for claim in ["https", "http", "ftp"] {
                let response = try await proxy.request("/", ["X-Forwarded-Proto: \(claim)"])
                #expect(response.text == "http")
            }
            #expect(origin.count == 1)
        }
    }
}
