import Testing

@testable import CacheProxy

/// Attacks on message boundaries (RFC 9112 §11.2), over a real socket.
@Suite struct FramingAttackTests {
    static let smuggled = "GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"

    static func post(_ fields: String, _ rest: String = "") -> String {
        "POST /a HTTP/1.1\r\nHost: x\r\n\(fields)\r\n\r\n\(rest)"
    }

    /// X1, X4, X5: each attack gets an error and a close; the bytes behind it do not reach the
    /// origin.
    static let attacks: [(String, Int)] = [
        (post("Content-Length: 5\r\nTransfer-Encoding: chunked", "0\r\n\r\n"), 400),
        (post("Transfer-Encoding: chunked\r\nContent-Length: 5", "0\r\n\r\n"), 400),
        (post("Content-Length: 0\r\nContent-Length: 0"), 400),
        (post("Content-Length: 0, 0"), 400), (post("Content-Length: -1"), 400),
        (post("Content-Length: +0"), 400), (post("Content-Length: 0 0"), 400),
        (post("Content-Length : 0"), 400), (post("Content-Length: 18446744073709551616"), 400),
        (post("Transfer-Encoding: chunked\r\nTransfer-Encoding: x", "0\r\n\r\n"), 400),
        (post("Transfer-Encoding: xchunked", "0\r\n\r\n"), 501),
        (post("Transfer-Encoding: chunked, identity", "0\r\n\r\n"), 501),
        (post("Transfer-Encoding:\u{b}chunked", "0\r\n\r\n"), 400),
        (post("Transfer-Encoding : chunked", "0\r\n\r\n"), 400),
        (post("X: y\r\n Transfer-Encoding: chunked", "0\r\n\r\n"), 400),
        ("POST /a HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
        ("GET /a HTTP/1.1\nHost: x\n\n", 400), ("GET /a HTTP/1.1\r\nHost: x\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x\r\nX: a\rb\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x\r\nX: a\0b\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x\r\nX : a\r\n\r\n", 400),
        (" GET /a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\n Host: x\r\n\r\n", 400), ("GET /a HTTP/1.1\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: x, y\r\n\r\n", 400), ("GET /a HTTP/2.0\r\nHost: x\r\n\r\n", 505),
        ("GET /a HTTP/1.1\r\nHost: a%zz\r\n\r\n", 400),
        ("GET /a HTTP/1.1\r\nHost: [zz]\r\n\r\n", 400),
        // X6
        ("GET x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400), ("GET * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET ftp://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("GET http://u:p@x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        ("CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 405),
        ("TRACE / HTTP/1.1\r\nHost: x\r\n\r\n", 405),
    ]

    @Test func attackIsRefusedAndNothingBehindItIsRead() async throws {
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60"], "x")
        }) { proxy, origin async throws in
            for (attack, status) in Self.attacks {
                let client = try proxy.client()
                let response = try await client.exchange(attack + Self.smuggled)
                #expect(response.status == status, "\(attack.debugDescription)")
                #expect(response["Connection"] == "close")
                #expect(try await client.isClosed(), "\(attack.debugDescription)")
            }
            #expect(origin.count == 0)
        }
    }

    @Test func brokenChunksEndTheConnection() async throws {
        try await withProxy({ request, socket in try socket.answer(200, [], "got") }) {
            proxy,
            origin async throws in
            for chunks in [
                "x\r\n", "5\nhello\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "-1\r\n",
                "5 \r\nhello\r\n",
                "ffffffffffffffff\r\n", "5\r\nhelloXX0\r\n\r\n",
                "5;\(String(repeating: "e", count: 300))\r\n",
            ] {
                let client = try proxy.client()
                let text = Self.post("Transfer-Encoding: chunked", chunks)
                let response = try await client.exchange(text + Self.smuggled)
                #expect([400, 502].contains(response.status), "\(chunks.debugDescription)")
                #expect(try await client.isClosed())
            }
            #expect(!origin.heads.contains("GET /smuggled"))
        }
    }

    /// X2: an `Upgrade` field starts no upgrade.
    @Test func upgradeIsIgnored() async throws {
        try await withProxy({ _, socket in try socket.answer(200, [], "x") }) {
            proxy,
            origin async throws in
            let client = try proxy.client()
            let upgrade =
                "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMA\r\n"
            #expect(
                try await client.exchange("GET /a HTTP/1.1\r\nHost: x\r\n\(upgrade)\r\n").status
                    == 200
            )
            #expect(try await client.exchange("GET /b HTTP/1.1\r\nHost: x\r\n\r\n").status == 200)
            let first = try #require(origin.requests.first)
            #expect(first["Upgrade"] == nil && first["HTTP2-Settings"] == nil)
        }
    }

    @Test func unrequestedProtocolSwitchIsAnError() async throws {
        try await withProxy({ _, socket in
            try socket.write("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\nbytes")
            return .keep
        }) { proxy, _ async throws in
            #expect(try await proxy.request("/").status == 502)
        }
    }

    /// X3, X9: the content of a GET is neither the next request nor part of a shared response.
    @Test func contentOfAGetIsNeitherARequestNorStored() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60"],
                "[\(request.body.count)]"
            )
        }) { proxy, origin async throws in
            let client = try proxy.client()
            let fat =
                "GET /a HTTP/1.1\r\nHost: \(ProxyHarness.host)\r\n"
                + "Content-Length: \(Self.smuggled.utf8.count)\r\n\r\n" + Self.smuggled
            let first = try await client.exchange(fat).text
            #expect(first == "[\(Self.smuggled.utf8.count)]")
            #expect(try await proxy.request("/a").text == "[0]")
            let second = try await client.exchange(fat).text
            #expect(second == "[\(Self.smuggled.utf8.count)]")
            #expect(try await proxy.request("/a").isHit)
            #expect(!origin.heads.contains("GET /smuggled"))
        }
    }

    @Test func contentOfAHeadDoesNotReachTheOrigin() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["X-Content: \(request.body.count)"], "")
        }) { proxy, origin async throws in
            let client = try proxy.client()
            let response = try await client.exchange(
                "HEAD /a HTTP/1.1\r\nHost: \(ProxyHarness.host)\r\n"
                    + "Content-Length: \(Self.smuggled.utf8.count)\r\n\r\n" + Self.smuggled,
                isHead: true
            )
            #expect(response["X-Content"] == "0")
            #expect(!origin.heads.contains("GET /smuggled"))
        }
    }

    /// X7.
    @Test func lineEndsInAnOriginsFieldsDoNotReachTheClient() async throws {
        try await withProxy({ _, socket in
            try socket.write(
                "HTTP/1.1 200 OK\r\nX-A: a\rInjected: 1\r\nX-B: b\u{0}c\r\nX-C: c\r\nContent-Length: 1\r\n\r\nx"
            )
            return .end
        }) { proxy, _ async throws in
            let client = try proxy.client()
            try await client.send("GET / HTTP/1.0\r\n\r\n")
            let text = try await client.rest()
            #expect(!text.contains("\rInjected") && !text.contains("\0"))
        }
    }

    @Test func stormOfInterimAnswersIsAnError() async throws {
        try await withProxy({ _, socket in
            for _ in 0..<2_000 { try socket.write("HTTP/1.1 103 Early Hints\r\n\r\n") }
            return try socket.answer(200, [], "x")
        }) { proxy, _ async throws in
            let response = try await proxy.request("/")
            #expect(response.status == 502 && response.informational.count < 100)
        }
    }

    @Test func unaskedNotModifiedIsNotStored() async throws {
        try await withProxy({ request, socket in
            if request.number == 0 { return try socket.answer(304, ["Cache-Control: max-age=60"]) }
            return try socket.answer(200, ["Cache-Control: max-age=60"], "body")
        }) { proxy, _ async throws in
            let first = try await proxy.request("/")
            #expect([304, 502].contains(first.status))
            // For a short time the error is shared with later requests.
            proxy.advance(2)
            #expect(try await proxy.request("/").text == "body")
        }
    }
}
