import CacheTestSupport
import Foundation
import Testing

@testable import CacheProxy

/// The host that origins get, with `--origin-host origin`.
@Suite struct OriginHostTests {
    static let script: WireOrigin.Script = { request, socket in
        try socket.answer(
            200,
            ["Cache-Control: max-age=60"],
            "\(request.number)",
            isHead: request.method == "HEAD"
        )
    }

    @Test(arguments: [
        ("http://a", "a"), ("http://A.Test:80", "a.test"), ("http://a:/", "a"),
        ("http://a:443", "a:443"), ("https://a:443/", "a"), ("https://a:80", "a:80"),
        ("http://127.0.0.1:9000", "127.0.0.1:9000"), ("http://[::80]", "[::80]"),
        ("https://[::1]:9", "[::1]:9"),
    ])
    func fieldNamesTheServer(_ row: (url: String, host: String)) {
        #expect(OriginAddress(row.url)?.hostField == row.host)
    }

    @Test(arguments: UpstreamKind.allCases)
    func eachOriginGetsItsOwnHost(_ kind: UpstreamKind) async throws {
        let origins = try (0..<2).map { _ in try WireOrigin(Self.script) }
        defer { for origin in origins { origin.stop() } }
        try await withProxy(
            origins: origins.map(\.port),
            configure: {
                $0.originHost = .origin
                $0.forwarded = .add
            },
            upstream: kind.make
        ) { proxy async throws in
            for number in 0..<2 {
                let host = "Host: A.test:81"
                _ = try await proxy.request("/\(number)", [host])
                _ = try await proxy.request("http://b.test/\(number)", ["Host: c.test"])
                _ = try await proxy.request("/up", [host], method: "PUT", body: "x")
                _ = try await proxy.request("/\(number)/", [host], method: "HEAD")
            }
        }
        #expect(origins.reduce(0) { $0 + $1.count } == 8)
        for origin in origins {
            #expect(origin.count > 0)
            for request in origin.requests {
                #expect(request["Host"] == "127.0.0.1:\(origin.port)", "\(request.head)")
                let told = ["a.test:81", "b.test"]
                #expect(told.contains(request["X-Forwarded-Host"] ?? ""), "\(request.head)")
            }
        }
    }

    @Test(arguments: UpstreamKind.allCases)
    func originThatIsAskedNextGetsItsOwnHost(_ kind: UpstreamKind) async throws {
        let origin = try WireOrigin(Self.script)
        defer { origin.stop() }
        try await withProxy(
            origins: [ClosedPort.number, origin.port],
            configure: { $0.originHost = .origin },
            upstream: kind.make
        ) { proxy async throws in
            for (number, method) in ["GET", "PUT", "GET", "PUT"].enumerated() {
                let body = method == "PUT" ? "x" : nil
                let response = try await proxy.request("/\(number)", method: method, body: body)
                #expect(response.status == 200)
            }
        }
        let host = "127.0.0.1:\(origin.port)"
        #expect(origin.requests.map { $0["Host"] } == [host, host, host, host])
    }

    /// A kept connection that the origin ends without a response is replaced.
    @Test func repeatedRequestGetsTheSameHost() async throws {
        try await withProxy(
            { request, socket in
                if request.number == 1 { return .end }
                return try socket.answer(200, ["Cache-Control: no-store"], "x")
            },
            configure: { $0.originHost = .origin }
        ) { proxy, origin async throws in
            for _ in 0..<2 { #expect(try await proxy.request("/").status == 200) }
            let host = "127.0.0.1:\(origin.port)"
            #expect(origin.requests.map { $0["Host"] } == [host, host, host])
        }
    }

    @Test func keyAndLogHaveTheHostOfTheClient() async throws {
        let path = NSTemporaryDirectory() + "origin-host-\(UUID().uuidString)"
        defer { ConfigurationReaderTests.remove(path) }
        try await withProxy(
            Self.script,
            configure: {
                $0.originHost = .origin
                $0.accessLog = path
            }
        ) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["Host: a.test"]).text == "0")
            #expect(try await proxy.request("/", ["Host: b.test"]).text == "1")
            #expect(try await proxy.request("/", ["Host: A.TEST:80"]).text == "0")
            #expect(origin.requests.allSatisfy { $0["Host"] == "127.0.0.1:\(origin.port)" })
        }
        let lines = try String(contentsOfFile: path, encoding: .utf8).split(separator: "\n")
        let hosts = lines.compactMap { $0.split(separator: " ").last }
        #expect(hosts.sorted() == ["a.test", "a.test", "b.test"])
    }

    /// To the cache, a URL with the origin's own host is one of another server.
    @Test(arguments: [false, true])
    func locationIsPassedOnAsItCame(isOwn: Bool) async throws {
        let script: WireOrigin.Script = { request, socket in
            guard request.method == "POST" else {
                return try socket.answer(200, ["Cache-Control: max-age=60"], "list")
            }
            let server = isOwn ? "http://\(request["Host"] ?? "")" : ""
            return try socket.answer(303, ["Location: \(server)/list"])
        }
        try await withProxy(script, configure: { $0.originHost = .origin }) {
            proxy,
            origin async throws in
            _ = try await proxy.request("/list")
            let response = try await proxy.request("/form", method: "POST", body: "x")
            let server = isOwn ? "http://127.0.0.1:\(origin.port)" : ""
            #expect(response["Location"] == "\(server)/list")
            #expect(try await proxy.request("/list").isHit == isOwn)
        }
    }

    @Test func hostIsTakenOverWhenTheConfigurationIsReadAgain() async throws {
        try await withProxy(Self.script) { proxy, origin async throws in
            _ = try await proxy.request("/1")
            var new = ExhaustionTests.pointing(at: origin.port)
            new.originHost = .origin
            #expect(try !proxy.service.reload(new).contains("origin-host"))
            _ = try await proxy.request("/2")
            let own = "127.0.0.1:\(origin.port)"
            #expect(origin.requests.map { $0["Host"] } == [ProxyHarness.host, own])
        }
    }
}
