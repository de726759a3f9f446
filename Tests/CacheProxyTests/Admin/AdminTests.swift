import CacheEngine
import CacheEngineRedis
import Foundation
import Synchronization
import Testing

@testable import CacheProxy

@Suite struct AdminTests {
    static let token = "0123456789abcdef"

    /// Runs a proxy with an administration; its origin adds `fields` to the response for a target.
    static func withAdmin(
        token: String? = Self.token,
        fields: @escaping @Sendable (String) -> [String] = {
            ["Cache-Tag: all, t\($0.dropFirst())", "ETag: \"e\""]
        },
        _ body: (ProxyHarness, WireOrigin, UInt16) async throws -> Void
    ) async throws {
        let path = try token.map { try ConfigurationReaderTests.file($0 + "\n") }
        defer { if let path { try? FileManager.default.removeItem(atPath: path) } }
        try await withProxy(
            { request, socket in
                try socket.answer(
                    200,
                    ["Cache-Control: max-age=60"] + fields(request.target),
                    "\(request.number)"
                )
            },
            configure: {
                $0.admin = .tcp(host: "127.0.0.1", port: 0)
                $0.purgeTokenFile = path
            }
        ) { proxy, origin async throws in
            guard case .tcp(_, let port) = proxy.service.adminAddress else {
                throw WireFailure("no admin")
            }
            try await body(proxy, origin, port)
        }
    }

    static func ask(
        _ port: UInt16,
        _ line: String,
        _ fields: [String] = ["Authorization: Bearer \(token)"]
    ) async throws -> WireResponse {
        let text =
            "\(line) HTTP/1.1\r\nHost: \(ProxyHarness.host)\r\n"
            + fields.map { $0 + "\r\n" }.joined() + "\r\n"
        return try await WireClient(port).exchange(text)
    }

    @Test func healthMetricsAndStatisticsAreShown() async throws {
        try await Self.withAdmin { proxy, _, port async throws in
            for _ in 0..<3 { _ = try await proxy.request("/1") }
            #expect(try await Self.ask(port, "GET /healthz").text == "ok\n")
            for scheme in ["http", "https"] {
                let absolute = "GET \(scheme)://host/healthz?a=/b"
                #expect(try await Self.ask(port, absolute).text == "ok\n")
            }
            let metrics = try await Self.ask(port, "GET /metrics").text
            #expect(metrics.contains("proxy_requests_total 3\n"))
            #expect(metrics.contains("proxy_loop_hits_total 2\n"))
            #expect(metrics.contains("cache_answers_total{source=\"fresh\"} 2\n"))
            #expect(metrics.contains("proxy_origin_up{origin=\"http://127.0.0.1:"))
            let text = try await Self.ask(port, "GET /statistics").text
            let parsed = try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any]
            #expect(parsed?["originRequests"] as? Int == 1 && parsed?["memoryEntries"] as? Int == 1)
            #expect(try await Self.ask(port, "GET /nothing").status == 404)
            #expect(try await Self.ask(port, "POST /healthz").status == 405)
        }
    }

    @Test func healthSaysThatTheProxyDrains() async throws {
        let gate = TurnStile()
        try await withProxy(
            { _, socket in
                gate.wait()
                return try socket.answer(200, [], "late")
            },
            configure: {
                $0.admin = .tcp(host: "127.0.0.1", port: 0)
                $0.drainTime = .seconds(20)
            }
        ) { proxy, origin async throws in
            guard case .tcp(_, let port) = proxy.service.adminAddress else {
                throw WireFailure("no admin")
            }
            async let late = proxy.request("/")
            #expect(await eventually { origin.count == 1 })
            #expect(try await Self.ask(port, "GET /healthz").status == 200)
            async let ended: Void = proxy.service.shutDown()
            #expect(await healthBecomes(503, port))
            gate.pass()
            #expect(try await late.text == "late")
            await ended
        }
    }

    private func healthBecomes(_ status: Int, _ port: UInt16) async -> Bool {
        await eventually { Self.health(port) == status }
    }

    /// The status of `/healthz` now.
    private static func health(_ port: UInt16) -> Int? {
        guard let client = try? WireClient(port) else { return nil }
        try? client.socket.write("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
        return (try? client.read(isHead: false))?.status
    }

    @Test func purgeRemovesByURL() async throws {
        try await Self.withAdmin { proxy, origin, port async throws in
            _ = try await proxy.request("/1")
            _ = try await proxy.request("/2")
            #expect(try await Self.ask(port, "PURGE /1").status == 200)
            #expect(try await Self.ask(port, "PURGE http://\(ProxyHarness.host)/2").status == 200)
            _ = try await proxy.request("/1")
            _ = try await proxy.request("/2")
            #expect(origin.count == 4)
        }
    }

    @Test func purgeRemovesByTag() async throws {
        try await Self.withAdmin { proxy, origin, port async throws in
            for target in ["/1", "/2", "/3"] { _ = try await proxy.request(target) }
            let auth = "Authorization: Bearer \(Self.token)"
            let purged = try await Self.ask(port, "PURGE /", [auth, "Cache-Tag: t1, nothing"])
            #expect(purged.status == 200 && purged.text.contains("\"tags\":2"))
            for target in ["/1", "/2", "/3"] { _ = try await proxy.request(target) }
            #expect(origin.count == 4)
            _ = try await Self.ask(port, "PURGE /", [auth, "Surrogate-Key: t2 t3"])
            for target in ["/1", "/2", "/3"] { _ = try await proxy.request(target) }
            #expect(origin.count == 6)
        }
    }

    /// A purge that repeats the field of a response finds that response, whatever stands between
    /// the tags.
    @Test(arguments: [
        ("Cache-Tag: a b", "Cache-Tag: a b"), ("Surrogate-Key: a,b c", "Surrogate-Key: a,b"),
        ("Cache-Tag: a,\tb", "Cache-Tag: b"), ("Surrogate-Key: a\tb", "Surrogate-Key: b"),
        ("Cache-Tag: a,\u{301}b", "Cache-Tag: a"), ("Cache-Tag: b a", "Cache-Tag: \u{301}c,a"),
        ("Cache-Tag: a", "Cache-Tag: c,\u{301}b,a"), ("Surrogate-Key: a, b", "Cache-Tag: b"),
    ])
    func purgeReadsTagsAsResponsesDo(_ stored: String, _ purged: String) async throws {
        try await Self.withAdmin(fields: { $0 == "/1" ? [stored] : [] }) { proxy, _, port in
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            let auth = "Authorization: Bearer \(Self.token)"
            let answer = try await Self.ask(port, "PURGE /", [auth, purged])
            #expect(answer.text.contains("\"removed\":1"), "\(answer.text)")
            #expect(try await !proxy.request("/1").isHit)
            #expect(try await proxy.request("/2").isHit)
        }
    }

    @Test func softPurgeMakesStale() async throws {
        try await Self.withAdmin { proxy, origin, port async throws in
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            let soft = ["Authorization: Bearer \(Self.token)", "Soft-Purge: 1"]
            #expect(try await Self.ask(port, "PURGE /1", soft).text.contains("\"removed\":1"))
            _ = try await Self.ask(port, "PURGE /", soft + ["Cache-Tag: t2"])
            for target in ["/1", "/2"] { _ = try await proxy.request(target) }
            #expect(origin.count == 4)
            #expect(origin.requests.suffix(2).allSatisfy { $0["If-None-Match"] == "\"e\"" })
        }
    }

    @Test(arguments: ["bearer", "BEARER", "Bearer", "bEARER  "])
    func schemeOfTheTokenHasNoCase(_ scheme: String) async throws {
        try await Self.withAdmin { _, _, port async throws in
            let fields = ["Authorization: \(scheme) \(Self.token)"]
            #expect(try await Self.ask(port, "PURGE /1", fields).status == 200)
        }
    }

    @Test(arguments: [
        "Cache-Tag:", "Cache-Tag: ,", "Surrogate-Key:", "Cache-Tag: , \t,", "Soft-Purge: maybe",
        "Purge-Wait: all", "Purge-Wait:",
    ])
    func purgeThatNamesNothingIsRefused(_ field: String) async throws {
        try await Self.withAdmin { proxy, _, port async throws in
            _ = try await proxy.request("/1")
            let auth = "Authorization: Bearer \(Self.token)"
            #expect(try await Self.ask(port, "PURGE /1", [auth, field]).status == 400)
            #expect(try await proxy.request("/1").isHit)
        }
    }

    @Test func everyMetricIsExplained() async throws {
        try await Self.withAdmin { proxy, _, port async throws in
            _ = try await proxy.request("/1")
            let lines = try await Self.ask(port, "GET /metrics").text.split(separator: "\n")
            let types = lines.indices.filter { lines[$0].hasPrefix("# TYPE ") }
            #expect(types.count > 20)
            for index in types {
                let name = lines[index].split(separator: " ")[2]
                let help = index > 0 ? lines[index - 1] : ""
                #expect(help.hasPrefix("# HELP \(name) ") && help.hasSuffix("."), "\(name)")
            }
        }
    }

    @Test(arguments: [["Host: \(ProxyHarness.host)"], ["Host: x", "Cache-Tag: t1"]])
    func purgeIsAnsweredWhenTheStoreHasRemoved(_ fields: [String]) async throws {
        let store = GatedStore()
        let path = try ConfigurationReaderTests.file(Self.token + "\n")
        defer { ConfigurationReaderTests.remove(path) }
        try await withProxy(
            { _, socket in
                try socket.answer(200, ["Cache-Control: max-age=60", "Cache-Tag: t1"], "x")
            },
            configure: {
                $0.admin = .tcp(host: "127.0.0.1", port: 0)
                $0.purgeTokenFile = path
            },
            adjust: { $0.backing = .custom(store) }
        ) { proxy, _ async throws in
            guard case .tcp(_, let port) = proxy.service.adminAddress else {
                Issue.record("The administration has no port")
                return
            }
            _ = try await proxy.request("/1")
            store.isHeld.store(true, ordering: .relaxed)
            let client = try WireClient(port)
            let auth = "Authorization: Bearer \(Self.token)"
            let lines = ([auth] + fields).map { $0 + "\r\n" }.joined()
            try await client.send("PURGE /1 HTTP/1.1\r\n\(lines)\r\n")
            #expect(await eventually { store.waiting.load(ordering: .relaxed) > 0 })
            #expect(try await onThread { client.socket.isSilent(milliseconds: 100) })
            await store.gate.open()
            #expect(try await client.response().status == 200)
        }
    }

    @Test func purgeUnderWayAtTheEndOfADrainIsAnswered() async throws {
        let store = GatedStore()
        let path = try ConfigurationReaderTests.file(Self.token + "\n")
        defer { ConfigurationReaderTests.remove(path) }
        try await withProxy(
            { _, socket in try socket.answer(200, ["Cache-Control: max-age=60"], "x") },
            configure: {
                $0.admin = .tcp(host: "127.0.0.1", port: 0)
                $0.purgeTokenFile = path
                $0.drainTime = .seconds(20)
            },
            adjust: { $0.backing = .custom(store) }
        ) { proxy, _ async throws in
            guard case .tcp(_, let port) = proxy.service.adminAddress else {
                throw WireFailure("no admin")
            }
            _ = try await proxy.request("/1")
            store.isHeld.store(true, ordering: .relaxed)
            let client = try WireClient(port)
            let auth = "Authorization: Bearer \(Self.token)\r\n"
            try await client.send(
                "PURGE /1 HTTP/1.1\r\nHost: \(ProxyHarness.host)\r\n\(auth)\r\n"
            )
            #expect(await eventually { store.waiting.load(ordering: .relaxed) > 0 })
            async let ended: Void = proxy.service.shutDown()
            // The listener of the clients has ended by then.
            #expect(try await onThread { client.socket.isSilent(milliseconds: 1_500) })
            await store.gate.open()
            #expect(try await client.response().status == 200)
            await ended
        }
    }

    @Test func purgeNeedsItsToken() async throws {
        try await Self.withAdmin { proxy, origin, port async throws in
            _ = try await proxy.request("/1")
            for fields in [
                [], ["Authorization: Bearer wrong"], ["Authorization: Bearer "],
                ["Authorization: Basic \(Self.token)"], ["Authorization: bearer"],
                ["Authorization: Bearer\(Self.token)"], ["Authorization: \(Self.token)"],
                ["Authorization: Bearer \(Self.token)x"],
            ] {
                let response = try await Self.ask(port, "PURGE /1", fields)
                #expect(response.status == 401 && response["WWW-Authenticate"] == "Bearer")
            }
            #expect(try await proxy.request("/1").isHit)
        }
        try await Self.withAdmin(token: nil) { _, _, port async throws in
            #expect(try await Self.ask(port, "PURGE /1").status == 403)
        }
    }

    @Test func logSaysWhatHappened() async throws {
        let path = NSTemporaryDirectory() + "cache-proxy-log-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        try await withProxy(PoisoningTests.script, configure: { $0.accessLog = path }) {
            proxy,
            _ async throws in
            _ = try await proxy.request("/a", ["User-Agent: \"x\" \u{e4}", "Referer: r"])
            _ = try await proxy.request("/a")
            _ = try await proxy.request("http://Example.test:80/b", ["Host: other.test"])
            _ = try await proxy.client().exchange("BAD\r\n\r\n")
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.count == 4)
        // A head that cannot be read leaves its client and the answer.
        let refused = try #require(lines.first { $0.contains("] \"-\" 400 ") })
        #expect(refused.hasPrefix("127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"-\" 400 "))
        #expect(refused.contains(" \"-\" \"-\" generated 0.") && refused.hasSuffix(" -"))
        // Each worker writes its own lines, so their order is undefined.
        let loaded = try #require(lines.first { $0.contains("GET /a ") && $0.contains(" origin ") })
        let kept = try #require(lines.first { $0.contains(" fresh ") })
        #expect(
            loaded.hasPrefix(
                "127.0.0.1 - - [14/Nov/2023:22:13:20 +0000] \"GET /a HTTP/1.1\" 200 14 \"r\" \"\\x22x\\x22 \\xc3\\xa4\" origin 0."
            )
        )
        #expect(kept.contains("\"-\" \"-\" fresh 0.") && kept.hasSuffix(" example.test"))
        // An absolute target replaces the field, which is the client's choice.
        let absolute = try #require(lines.first { $0.contains("\"GET http://Example.test:80/b ") })
        #expect(absolute.hasSuffix(" example.test"))
    }

    @Test func logHasTheBytesThatWerePassedOn() async throws {
        let path = NSTemporaryDirectory() + "access-\(UUID().uuidString)"
        defer { try? FileManager.default.removeItem(atPath: path) }
        let script: WireOrigin.Script = { request, socket in
            let isCut = request.target == "/cut"
            try socket.write("HTTP/1.1 200 OK\r\n")
            try socket.write(
                isCut
                    ? "Content-Length: 100\r\n\r\n\(String(repeating: "x", count: 40))"
                    : "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
            )
            return .end
        }
        try await withProxy(script, configure: { $0.accessLog = path }) { proxy, _ async throws in
            _ = try? await proxy.request("/cut")
            _ = try await proxy.request("/chunked")
            #expect(
                try await proxy.client().exchange(
                    "HEAD /chunked HTTP/1.1\r\nHost: x\r\n\r\n",
                    isHead: true
                ).status == 200
            )
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        #expect(lines.contains { $0.contains("GET /cut HTTP/1.1\" 200 40 ") })
        #expect(lines.contains { $0.contains("GET /chunked HTTP/1.1\" 200 5 ") })
        #expect(lines.contains { $0.contains("HEAD /chunked HTTP/1.1\" 200 - ") })
    }

    @Test func reloadTakesOverWhatItCan() async throws {
        let other = try WireOrigin { _, socket in try socket.answer(200, [], "other") }
        defer { other.stop() }
        try await withProxy(PoisoningTests.script) { proxy, _ async throws in
            var new = ExhaustionTests.pointing(at: other.port)
            new.memory = .megabytes(17)
            let left = try proxy.service.reload(new)
            #expect(left.contains("memory") && !left.contains("origin"))
            #expect(try await proxy.request("/").text == "other")
        }
    }

    /// The reader refuses such options too; the engine may have rules that it does not know.
    @Test func reloadRefusesWhatTheNextStartWould() async throws {
        try await withProxy(PoisoningTests.script) { proxy, _ async throws in
            var usual = proxy.service.configuration
            usual.idleTime = .seconds(7)
            usual.fleet = "redis://a/b"
            var (still, hasty, sharing) = (usual, usual, usual)
            still.betweenBytesTime = .zero
            hasty.fleetLag = .zero
            sharing.mode = .private
            sharing.fleetShares = .entries
            for new in [still, hasty, sharing] {
                let error = #expect(throws: CacheError.self) { try proxy.service.reload(new) }
                #expect(error?.code == .configurationInvalid)
            }
            #expect(proxy.service.current.withLock { $0.idleTime } != .seconds(7))
        }
    }

    /// Half of an option is worse than none: a drain would wait longer for requests than it lets them
    /// run.
    @Test func reloadChangesNoOptionThatNeedsARestart() async throws {
        let most = OptionSample.arguments(without: "mode")
        guard case .run(let new) = try ConfigurationReader.read(most) else {
            throw WireFailure("no configuration")
        }
        try await withProxy(PoisoningTests.script) { proxy, _ async throws in
            let service = proxy.service
            let left = try service.reload(new)
            let applied = service.current.withLock { $0 }
            var kept = 0
            for option in ProxyService.fixedOptions where option.name != "connect-timeout" {
                #expect(option.differs(new, service.configuration) == left.contains(option.name))
                guard option.name != "name" else { continue }
                #expect(!option.differs(applied, service.configuration), "\(option.name)")
                kept += 1
            }
            #expect(kept > 10 && applied.idleTime == new.idleTime)
        }
    }

    @Test func limitOfConnectionsToOriginsHoldsOverAReload() async throws {
        let gate = TurnStile()
        let origin = try WireOrigin { request, socket in
            if request.target == "/stream" { gate.wait() }
            return try socket.answer(200, [], request.target)
        }
        defer { origin.stop() }
        var configuration = try OptionTests.read([
            "--listen", "127.0.0.1:0", "--origin-connections", "1", "--drain-timeout", "1",
        ])
        configuration.origins = [try #require(OriginAddress("http://127.0.0.1:\(origin.port)"))]
        let service = try await ProxyService(configuration)
        guard case .tcp(_, let port) = service.address else { throw WireFailure("no port") }
        let first = try WireClient(port)
        try await first.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(await eventually { origin.count == 1 })
        configuration.connectTime += .seconds(1)
        _ = try service.reload(configuration)
        let second = try WireClient(port)
        try await second.send("GET /other HTTP/1.1\r\nHost: x\r\n\r\n")
        #expect(try await onThread { second.socket.isSilent(milliseconds: 300) })
        #expect(origin.count == 1)
        gate.pass()
        #expect(try await first.response().text == "/stream")
        #expect(try await second.response().text == "/other")
        await service.shutDown()
    }

    @Test func connectionsKeptBeforeAReloadAreUsedAndCountAfterIt() async throws {
        let origin = try WireOrigin { request, socket in
            try socket.answer(200, ["Cache-Control: no-store"], request.target)
        }
        defer { origin.stop() }
        var configuration = try OptionTests.read([
            "--listen", "127.0.0.1:0", "--workers", "1", "--origin-connections", "1",
            "--drain-timeout", "1",
        ])
        configuration.origins = [try #require(OriginAddress("http://127.0.0.1:\(origin.port)"))]
        let service = try await ProxyService(configuration)
        guard case .tcp(_, let port) = service.address else { throw WireFailure("no port") }
        let client = try WireClient(port)
        for (number, method) in ["GET", "GET", "POST"].enumerated() {
            try await client.send(
                "\(method) /\(number) HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
            )
            #expect(try await client.response().text == "/\(number)")
            configuration.connectTime += .seconds(1)
            _ = try service.reload(configuration)
        }
        // A POST uses no kept connection: the one of before makes room.
        #expect(origin.requests.map(\.connection) == [1, 1, 2])
        #expect(await eventually { origin.openConnectionCount == 1 })
        await service.shutDown()
    }

    @Test func changedNameNeedsARestartAndAGeneratedNameDoesNot() async throws {
        let read = { (arguments: [String]) throws in
            try OptionTests.read(["--listen", "127.0.0.1:0"] + arguments)
        }
        for (before, after, isNamed) in [
            (["--name", "a"], ["--name", "b"], true), (["--name", "a"], ["--name", "a"], false),
            (["--name", "a"], [], true), ([], ["--name", "a"], true), ([], [], false),
        ] {
            let service = try await ProxyService(try read(before))
            #expect(try service.reload(try read(after)).contains("name") == isNamed)
            await service.shutDown()
        }
    }
}
