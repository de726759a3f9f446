import CacheTestSupport
import Synchronization
import Testing

@testable import CacheProxy

/// Faults of an origin, and the responses that the client then gets.
@Suite struct OriginFaultTests {
    @Test func staleAnswerStandsInForAConnectionThatCloses() async throws {
        for (directive, stands) in [
            ("max-age=5", true), ("max-age=5, must-revalidate", false),
            ("max-age=5, proxy-revalidate", false), ("s-maxage=5", false),
            ("no-cache", false), ("max-age=5, stale-if-error=60", true),
        ] {
            try await withProxy({ request, socket in
                if request.number > 0 { return .end }
                return try socket.answer(200, ["Cache-Control: \(directive)"], "old")
            }) { proxy, _ async throws in
                _ = try await proxy.request("/")
                proxy.advance(10)
                let response = try await proxy.request("/")
                if stands {
                    #expect(response.status == 200 && response.text == "old", "\(directive)")
                    #expect(response.age == 10)
                } else {
                    #expect([502, 504].contains(response.status), "\(directive)")
                    #expect(response["Proxy-Status"] != nil)
                }
            }
        }
    }

    @Test func errorStatusIsReplacedOnlyWhereAllowed() async throws {
        for (directive, stands) in [("max-age=5", false), ("max-age=5, stale-if-error=60", true)] {
            try await withProxy({ request, socket in
                if request.number > 0 { return try socket.answer(503, [], "down") }
                return try socket.answer(200, ["Cache-Control: \(directive)"], "old")
            }) { proxy, _ async throws in
                _ = try await proxy.request("/")
                proxy.advance(10)
                #expect(try await proxy.request("/").text == (stands ? "old" : "down"))
            }
        }
    }

    /// RFC 9209 §2: a member begins with a token or a string of structured fields.
    @Test(arguments: [
        ("px", "px"), ("10.0.0.1", "\"10.0.0.1\""), ("3rd", "\"3rd\""), ("-a", "\"-a\""),
    ])
    func nameIsWrittenAsAStructuredField(_ name: String, _ written: String) async throws {
        try await withProxy(
            { request, socket in
                if request.target == "/end" { return .end }
                return try socket.answer(200, [], "x")
            },
            configure: { $0.name = name }
        ) { proxy, _ async throws in
            let failed = try await proxy.request("/end")
            #expect(failed["Proxy-Status"]?.hasPrefix("\(written); detail=") == true)
            let refused = try await proxy.request("/", method: "TRACE")
            #expect(refused["Proxy-Status"]?.hasPrefix("\(written); detail=") == true)
            let response = try await proxy.request("/")
            #expect(response["Cache-Status"]?.hasPrefix("\(written); ") == true)
        }
    }

    @Test func originThatCannotBeReachedIs502() async throws {
        try await withProxy(origins: [ClosedPort.number]) { proxy async throws in
            let response = try await proxy.request("/")
            #expect(response.status == 502)
            #expect(try await proxy.request("/", method: "POST", body: "x").status == 502)
        }
    }

    /// The content can be read only once.
    @Test(arguments: ["Content-Length: 5", "Transfer-Encoding: chunked"])
    func uploadReachesTheNextOriginWhole(framing: String) async throws {
        let origin = try WireOrigin { request, socket in
            try socket.answer(200, [], String(decoding: request.body, as: UTF8.self))
        }
        defer { origin.stop() }
        try await withProxy(origins: [ClosedPort.number, origin.port]) { proxy async throws in
            // The origins take turns, so one of the requests goes to the stopped origin first.
            for _ in 0..<2 {
                let client = try proxy.client()
                try await client.send("PUT / HTTP/1.1\r\nHost: x\r\n\(framing)\r\n\r\n")
                let isChunked = framing.hasSuffix("chunked")
                let response = try await client.exchange(
                    isChunked ? "5\r\nhello\r\n0\r\n\r\n" : "hello"
                )
                #expect(response.status == 200 && response.text == "hello")
            }
        }
    }

    @Test func originThatHangsIs504() async throws {
        try await withProxy(
            { _, socket in
                _ = try socket.readToEnd()
                return .end
            },
            configure: { $0.firstByteTime = .seconds(0.3) }
        ) { proxy, _ async throws in
            #expect(try await proxy.request("/").status == 504)
        }
    }

    @Test func unknownStatusesArePassedOn() async throws {
        for status in [299, 418, 499, 599, 999] {
            try await withProxy({ _, socket in try socket.answer(status, [], "x") }) {
                proxy,
                _ async throws in
                let response = try await proxy.request("/")
                #expect(response.status == status && response.text == "x")
            }
        }
    }

    @Test func excessBytesAreCutAndTheConnectionDropped() async throws {
        try await withProxy({ request, socket in
            try socket.write(
                "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
            )
            return .keep
        }) { proxy, origin async throws in
            let client = try proxy.client()
            for _ in 0..<3 {
                let response = try await client.exchange("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
                #expect(response.text == "0123456789" && response.isComplete)
            }
            #expect(Set(origin.requests.map(\.connection)).count == 3)
        }
    }

    @Test func truncatedBodyEndsEarlyForTheClientAndIsNotStored() async throws {
        for head in [
            "Content-Length: 100\r\nCache-Control: max-age=60\r\n\r\n0123456789",
            "Transfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\na\r\n0123456789\r\n",
            "Transfer-Encoding: chunked\r\nCache-Control: max-age=60\r\n\r\na\r\n0123456789\r\nzz\r\n",
        ] {
            try await withProxy({ _, socket in
                try socket.write("HTTP/1.1 200 OK\r\n" + head)
                return .end
            }) { proxy, origin async throws in
                for number in 1...8 {
                    let response = try await proxy.request("/")
                    #expect(response.status == 502 || !response.isComplete, "\(head)")
                    // The request is sent once, and the truncated response is not reused.
                    #expect(origin.count == number, "\(head)")
                }
            }
        }
    }

    @Test func bodyWithoutLengthEndsWithItsConnection() async throws {
        try await withProxy({ _, socket in
            try socket.write("HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\n\r\nuntil the end")
            return .end
        }) { proxy, origin async throws in
            for _ in 0..<2 { #expect(try await proxy.request("/").text == "until the end") }
            #expect(origin.count == 1)
        }
    }

    /// RFC 9112 §6.1: a response with an unknown transfer coding is refused.
    @Test(arguments: ["gzip", "fancy", "identity", "\"chunked\"", "chunked, gzip"])
    func unknownTransferCodingIs502AndNotStored(coding: String) async throws {
        try await withProxy({ _, socket in
            try socket.write(
                "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 4\r\n"
                    + "Transfer-Encoding: \(coding)\r\n\r\nbody"
            )
            return .keep
        }) { proxy, origin async throws in
            for number in 1...3 {
                let response = try await proxy.request("/\(number)")
                #expect(response.status == 502 && !response.text.contains("body"))
                #expect(
                    try await proxy.request("/\(number)", ["Cache-Control: only-if-cached"]).status
                        == 504
                )
            }
            #expect(Set(origin.requests.map(\.connection)).count == origin.count)
        }
    }

    @Test func interimAnswersArePassedOn() async throws {
        try await withProxy({ _, socket in
            try socket.write(
                "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
            )
            return try socket.answer(200, ["Cache-Control: max-age=60"], "x")
        }) { proxy, _ async throws in
            let response = try await proxy.request("/")
            #expect(response.informational.map(\.status) == [102, 103])
            #expect(response.informational.last?["Link"] == "</a>" && response.text == "x")
            #expect(try await proxy.request("/").informational.isEmpty)
        }
    }

    @Test func requestIsNeverSentTwice() async throws {
        // The second request on a connection gets no response; only a GET may be retried.
        for (method, status, sent) in [("GET", 200, 3), ("POST", 502, 2)] {
            try await withProxy({ request, socket in
                if request.isFirst { return try socket.answer(200, [], "x") }
                return .end
            }) { proxy, origin async throws in
                _ = try await proxy.request("/1")
                let response = try await proxy.request(
                    "/2",
                    method: method,
                    body: method == "POST" ? "x" : nil
                )
                if method == "POST" {
                    // If the POST got a new connection, the origin answered it.
                    #expect([200, 502].contains(response.status))
                    #expect(origin.requests.count { $0.target == "/2" } == 1)
                } else {
                    #expect(response.status == status && origin.count <= sent)
                }
            }
        }
    }

    @Test func deadOriginsAreLeftOut() async throws {
        let alive = try WireOrigin { _, socket in try socket.answer(200, [], "alive") }
        defer { alive.stop() }
        try await withProxy(origins: [ClosedPort.number, alive.port]) { proxy async throws in
            for number in 0..<12 {
                #expect(try await proxy.request("/\(number)").text == "alive")
            }
            #expect(alive.count == 12)
        }
    }

    @Test func originsAreAskedInTurn() async throws {
        let first = try WireOrigin { _, socket in try socket.answer(200, [], "1") }
        let second = try WireOrigin { _, socket in try socket.answer(200, [], "2") }
        defer {
            first.stop()
            second.stop()
        }
        try await withProxy(origins: [first.port, second.port]) { proxy async throws in
            for number in 0..<10 { _ = try await proxy.request("/\(number)") }
            #expect(first.count == 5 && second.count == 5)
        }
    }

    @Test func originSeesWhatTheClientMeant() async throws {
        try await withProxy({ _, socket in try socket.answer(200, [], "x") }) {
            proxy,
            origin async throws in
            _ = try await proxy.request(
                "/a/../b%2f?x=%41&y",
                [
                    "Host: EXAMPLE.test:80", "X-A: 1", "X-A: 2", "Cookie: c", "Accept-Encoding: br",
                    "Connection: x-hop", "X-Hop: 1", "Upgrade: websocket", "TE: trailers",
                ]
            )
            let request = try #require(origin.requests.first)
            #expect(request.head == "GET /a/../b%2f?x=%41&y")
            #expect(request["Host"] == "example.test")
            #expect(request["X-A"] == "1, 2" && request["Cookie"] == "c")
            #expect(request["Via"] == "1.1 me" && request["CDN-Loop"] == "me")
            #expect(request["X-Hop"] == nil && request["Upgrade"] == nil && request["TE"] == nil)
            #expect(request["X-Forwarded-For"] == nil && request["Forwarded"] == nil)
            #expect(request["User-Agent"] == nil && request["Accept"] == nil)
            #expect(request["Accept-Encoding"] == "br")
            _ = try await proxy.request("http://other.test/c", ["Host: ignored.test"])
            #expect(origin.requests.last?.head == "GET /c")
            #expect(origin.requests.last?["Host"] == "other.test")
        }
    }

    /// RFC 9110 §7.6.3: `Via` has the version in which the request came.
    @Test(arguments: [
        ("1.1", "", "1.1 me"), ("1.0", "", "1.0 me"),
        ("1.0", "Via: 1.1 a, 1.1 b\r\n", "1.1 a, 1.1 b, 1.0 me"),
        ("1.1", "Via: 1.0 a\r\n", "1.0 a, 1.1 me"),
    ])
    func viaHasTheVersionOfTheRequest(_ version: String, _ sent: String, _ seen: String)
        async throws
    {
        try await withProxy({ _, socket in try socket.answer(200, [], "x") }) {
            proxy,
            origin async throws in
            for method in ["GET", "DELETE"] {
                let head = "\(method) / HTTP/\(version)\r\nHost: x\r\n\(sent)\r\n"
                #expect(try await proxy.client().exchange(head).status == 200)
                #expect(origin.requests.last?["Via"] == seen)
                #expect(origin.requests.last?["CDN-Loop"] == "me")
            }
        }
    }

    /// RFC 9110 §7.6.2: OPTIONS is answered by the proxy at 0, and goes on one lower otherwise.
    @Test func optionsGoNoFurtherThanTheyMay() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["Allow: GET"], request["Max-Forwards"] ?? "-")
        }) { proxy, origin async throws in
            let targets: [(String, String?)] = [("*", nil), ("/a", nil), ("/a", "content")]
            for (target, body) in targets {
                let own = try await proxy.request(
                    target,
                    ["Max-Forwards: 0"],
                    method: "OPTIONS",
                    body: body
                )
                #expect(own.status == 200 && own["Content-Length"] == "0" && own.body.isEmpty)
                #expect(own["Allow"]?.contains("OPTIONS") == true && own["Via"] == "1.1 me")
            }
            #expect(origin.count == 0)
            for (sent, seen) in [("1", "0"), ("70", "69"), ("99999999999", "255"), ("x", "x")] {
                let fields = ["Max-Forwards: \(sent)"]
                let passed = try await proxy.request("/a", fields, method: "OPTIONS")
                #expect(passed.text == seen && passed["Allow"] == "GET")
            }
            #expect(try await proxy.request("/a", method: "OPTIONS").text == "-")
            // Other methods are not bound.
            #expect(try await proxy.request("/a", ["Max-Forwards: 0"]).text == "0")
        }
    }

    @Test func contentReachesTheOriginWhole() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, [], "\(request.body.count)")
        }) { proxy, _ async throws in
            let body = String(repeating: "0123456789", count: 50_000)
            #expect(try await proxy.request("/", method: "POST", body: body).text == "500000")
            let client = try proxy.client()
            let chunks = String(
                repeating: "1000\r\n\(String(repeating: "x", count: 4_096))\r\n",
                count: 64
            )
            let response = try await client.exchange(
                "PUT / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n\(chunks)0\r\n\r\n"
            )
            #expect(response.text == "262144")
        }
    }

    @Test func concurrentMissesAreOneRequest() async throws {
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], "x")
        }) { proxy, origin async throws in
            try await withThrowingTaskGroup(of: String.self) { group in
                for _ in 0..<50 { group.addTask { try await proxy.request("/").text } }
                for try await text in group { #expect(text == "x") }
            }
            #expect(origin.count == 1)
        }
    }
}
