import CacheEngine
import Testing

@testable import CacheProxy

/// Parameters that neither the key nor the origin gets.
@Suite struct IgnoredParametersTests {
    static let list = "gclid,utm_*"

    @Test(arguments: [
        ("/a?gclid=1", "/a"), ("/a?gclid", "/a"), ("/a?gclid=", "/a"), ("/?gclid=1", "/"),
        ("/a?gclid=1&x=2", "/a?x=2"), ("/a?x=2&gclid=1", "/a?x=2"), ("/a?utm_=1", "/a"),
        ("/a?x=1&utm_source=a&y=2&utm_medium=b", "/a?x=1&y=2"), ("/a?gclid=1&gclid=2", "/a"),
        ("/a?y=2&x=+a%20b%2B&gclid=1&y=1", "/a?y=2&x=+a%20b%2B&y=1"),
        ("/a?x=1&&gclid=3&&y=2&", "/a?x=1&&&y=2&"), ("/a?=1&gclid=2", "/a?=1"),
        ("/a?gclid=1&", "/a"), ("/a?&gclid=1", "/a"), ("/a?&gclid=1&", "/a?&"),
        ("/a?gclid=1?x=2", "/a"), ("/a?x=?&gclid=1", "/a?x=?"), ("/a?gclid=1=2&x", "/a?x"),
        ("/gclid?gclid", "/gclid"),
    ])
    func namedParametersAreRemoved(_ row: (target: String, rest: String)) throws {
        let ignored = try IgnoredParameters(parsing: Self.list)
        #expect(ignored.removed(from: "http://h\(row.target)") == "http://h\(row.rest)")
    }

    @Test(arguments: [
        "", "/", "/a", "/a?", "/a?x=1", "/a?&x=1", "/a?x=1&&y=2&", "/a?utm=1", "/a?xutm_a=1",
        "/a?gclidx=1", "/a?gcli", "/a?GCLID=1", "/a?%67clid=1", "/a?utm%5Fsource=1",
        "/a?x=gclid=1", "/a?x=1;gclid=2", "/a;gclid=1?x=1", "/gclid=1&utm_a=2", "/a?&", "/a?=",
    ])
    func everyOtherByteStays(target: String) throws {
        let ignored = try IgnoredParameters(parsing: Self.list)
        #expect(ignored.removed(from: "http://h\(target)") == "http://h\(target)")
    }

    @Test(arguments: [
        ("a", "a=1&A=2&ab=3", "A=2&ab=3"), ("a*", "a=1&A=2&ab=3", "A=2"),
        (" a , b ", "a&b&c", "c"), ("a%20b", "a%20b=1&a+b=2", "a+b=2"),
        ("a,a*", "a&ab&b", "b"), ("x[]", "x[]=1&x=2", "x=2"),
    ])
    func namesAreCompared(_ row: (list: String, query: String, rest: String)) throws {
        let ignored = try IgnoredParameters(parsing: row.list)
        #expect(ignored.removed(from: "http://h/?\(row.query)") == "http://h/?\(row.rest)")
    }

    @Test func keyAndOriginLackThem() async throws {
        let options = ["--ignore-query", Self.list]
        try await OptionTests.withOptions(options, PoisoningTests.script) {
            proxy,
            origin async throws in
            let host = ProxyHarness.host
            for target in [
                "/a?x=1&utm_source=m", "/a?x=1", "/a?gclid=2&x=1", "http://\(host)/a?utm_a&x=1",
            ] {
                #expect(try await proxy.request(target).text == "\(host)/a?x=1")
            }
            #expect(origin.count == 1)
            _ = try await proxy.request("/a?gclid=3&x=1", method: "POST", body: "y")
            #expect(try await !proxy.request("/a?x=1&utm_b=4").isHit)
            #expect(origin.heads == ["GET /a?x=1", "POST /a?x=1", "GET /a?x=1"])
        }
    }

    /// A purge names the key as a request does, also after the list has changed.
    @Test func purgeNamesTheSameKey() async throws {
        let token = try ConfigurationReaderTests.file(AdminTests.token + "\n")
        defer { ConfigurationReaderTests.remove(token) }
        let ignored = try IgnoredParameters(parsing: Self.list)
        try await withProxy(
            PoisoningTests.script,
            configure: {
                $0.admin = .tcp(host: "127.0.0.1", port: 0)
                $0.purgeTokenFile = token
                $0.ignoredParameters = ignored
            }
        ) { proxy, _ async throws in
            guard case .tcp(_, let port) = proxy.service.adminAddress else {
                throw WireFailure("no admin")
            }
            let absolute = "http://\(ProxyHarness.host)/a?utm_c"
            for target in ["/a?utm_source=b", "/a?gclid=1&", absolute, "/a"] {
                _ = try await proxy.request("/a?utm_source=a")
                let purged = try await AdminTests.ask(port, "PURGE \(target)")
                #expect(purged.text.contains("\"removed\":1"), "\(target): \(purged.text)")
                #expect(try await !proxy.request("/a").isHit)
            }

            var new = proxy.service.configuration
            new.ignoredParameters = try IgnoredParameters(parsing: "x")
            #expect(try proxy.service.reload(new) == [])
            #expect(try await proxy.request("/b?x=1").text == "\(ProxyHarness.host)/b")
            let purged = try await AdminTests.ask(port, "PURGE /b?x=2")
            #expect(purged.text.contains("\"removed\":1"), "\(purged.text)")
            #expect(try await !proxy.request("/b").isHit)
        }
    }

    /// Answers a POST with the field that it names.
    private static let naming: WireOrigin.Script = { request, socket in
        guard request.method == "POST" else { return try PoisoningTests.script(request, socket) }
        return try socket.answer(303, [request["X-Answer"] ?? ""], "")
    }

    /// An origin writes URLs with the parameters, also after the list has changed.
    @Test(arguments: ["Location", "Content-Location"])
    func answeredPostEndsWhatItsLocationNames(field: String) async throws {
        let options = ["--ignore-query", Self.list]
        try await OptionTests.withOptions(options, Self.naming) { proxy, _ async throws in
            func post(naming url: String) async throws {
                let fields = ["X-Answer: \(field): \(url)"]
                let answer = try await proxy.request("/post", fields, method: "POST", body: "x")
                #expect(answer.status == 303)
            }
            let absolute = "http://\(ProxyHarness.host)/a?gclid=1"
            for url in ["/a?utm_source=mail", absolute, "/a?utm_b#x", "/a"] {
                _ = try await proxy.request("/a")
                #expect(try await proxy.request("/a?gclid=2").isHit)
                try await post(naming: "/b?utm_source=mail")
                #expect(try await proxy.request("/a").isHit)
                try await post(naming: url)
                #expect(try await !proxy.request("/a").isHit, "\(url)")
            }

            var new = proxy.service.configuration
            new.ignoredParameters = try IgnoredParameters(parsing: "x")
            #expect(try proxy.service.reload(new) == [])
            _ = try await proxy.request("/a?x=1")
            try await post(naming: "/a?utm_source=mail")
            #expect(try await proxy.request("/a").isHit)
            try await post(naming: "/a?x=2")
            #expect(try await !proxy.request("/a").isHit)

            new.ignoredParameters = nil
            #expect(try proxy.service.reload(new) == [])
            try await post(naming: "/a?x=2")
            #expect(try await proxy.request("/a").isHit)
        }
    }
}
