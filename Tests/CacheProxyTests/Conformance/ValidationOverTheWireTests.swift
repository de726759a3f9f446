import CacheEngine
import HTTPCaching
import Testing

@testable import CacheProxy

/// RFC 9111 §4.3, §4.4 and RFC 9110 §13, §14, tested from outside.
@Suite struct ValidationOverTheWireTests {
    @Test func staleAnswerIsValidatedAndFreshened() async throws {
        try await withProxy({ request, socket in
            if request["If-None-Match"] == "\"a\"" {
                return try socket.answer(
                    304,
                    ["Cache-Control: max-age=50", "X-Kind: new", "X-Added: 1", "ETag: \"a\""]
                )
            }
            return try socket.answer(
                200,
                [
                    "Cache-Control: max-age=5", "ETag: \"a\"", "X-Kind: old",
                    "Last-Modified: \(HTTPDate.string(0))",
                ],
                "body"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            proxy.advance(10)
            for _ in 0..<2 {
                let response = try await proxy.request("/")
                #expect(response.status == 200 && response.text == "body")
                #expect(response["X-Kind"] == "new" && response["X-Added"] == "1")
                #expect(response["Cache-Control"] == "max-age=50")
            }
            #expect(origin.count == 2)
            #expect(origin.requests.last?["If-Modified-Since"] == HTTPDate.string(0))
            proxy.advance(40)
            #expect(try await proxy.request("/").age == 40)
            #expect(origin.count == 2)
        }
    }

    @Test func everyStoredFieldIsUpdatedButThoseOfTheContent() async throws {
        let updated = [
            "Cache-Control: max-age=9", "Expires: x", "Content-Location: /b", "Content-Foo: 2",
            "X-Foo: 2", "Link: </2>", "Server: 2", "Warning: 199 - 2",
        ]
        let script: WireOrigin.Script = { request, socket in
            if request["If-None-Match"] != nil {
                return try socket.answer(
                    304,
                    updated + ["Content-Length: 99", "Content-Encoding: x", "Content-Range: x"]
                )
            }
            return try socket.answer(
                200,
                ["Cache-Control: max-age=1", "ETag: \"a\"", "X-Foo: 1"],
                "body"
            )
        }
        try await withProxy(script, configure: { $0.cookies = .store }) { proxy, _ async throws in
            _ = try await proxy.request("/")
            proxy.advance(2)
            _ = try await proxy.request("/")
            let response = try await proxy.request("/")
            #expect(response.isHit && response.text == "body")
            for field in updated {
                let name = field.prefix { $0 != ":" }
                #expect(
                    response[String(name)] == String(field.dropFirst(name.count + 2)),
                    "\(name)"
                )
            }
            #expect(response["Content-Length"] == "4")
            #expect(response["Content-Encoding"] == nil && response["Content-Range"] == nil)
        }
    }

    @Test func cookieOfA304IsForTheClientThatCausedIt() async throws {
        try await withProxy({ request, socket in
            let fields = ["Cache-Control: max-age=1", "ETag: \"a\""]
            if request["If-None-Match"] != nil {
                return try socket.answer(304, fields + ["Set-Cookie: a=b", "Set-Cookie: c=d"])
            }
            return try socket.answer(200, fields, "body")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            proxy.advance(2)
            let asker = try await proxy.request("/")
            #expect(asker.status == 200 && asker.text == "body")
            let cookies = asker.fields.filter { $0.name.lowercased() == "set-cookie" }
            #expect(cookies.map { String($0.value) } == ["a=b", "c=d"])
            let other = try await proxy.request("/")
            #expect(other.isHit && other["Set-Cookie"] == nil)
            #expect(origin.count == 2)
        }
    }

    @Test func changedAnswerReplacesTheStoredOne() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=5", "ETag: \"\(request.number)\""],
                "\(request.number)"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            proxy.advance(6)
            #expect(try await proxy.request("/").text == "1")
            #expect(try await proxy.request("/").text == "1")
            #expect(origin.requests[1]["If-None-Match"] == "\"0\"")
        }
    }

    @Test func clientConditionsAreAnsweredFromTheStore() async throws {
        let modified = HTTPDate.string(1_600_000_000)
        try await withProxy({ _, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "ETag: \"a\"", "Last-Modified: \(modified)"],
                "body"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for (field, status) in [
                ("If-None-Match: \"a\"", 304), ("If-None-Match: W/\"a\"", 304),
                ("If-None-Match: \"b\", \"a\"", 304), ("If-None-Match: *", 304),
                ("If-None-Match: \"b\"", 200), ("If-Modified-Since: \(modified)", 304),
                ("If-Modified-Since: \(HTTPDate.string(1_500_000_000))", 200),
            ] {
                let response = try await proxy.request("/", [field])
                #expect(response.status == status, "\(field)")
                #expect(response["ETag"] == "\"a\"", "\(field)")
            }
            #expect(origin.count == 1)
        }
    }

    @Test func headIsAnsweredFromAStoredGet() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60"],
                "body",
                isHead: request.method == "HEAD"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            let head = try await proxy.request("/", method: "HEAD")
            #expect(head.status == 200 && head["Content-Length"] == "4" && origin.count == 1)
            _ = try await proxy.request("/h", method: "HEAD")
            #expect(try await proxy.request("/h").text == "body")
        }
    }

    @Test func unsafeMethodsInvalidate() async throws {
        for method in ["POST", "PUT", "DELETE", "PATCH", "M-FOO", "get"] {
            for (status, isGone) in [
                (200, true), (204, true), (302, true), (404, false), (500, false),
            ] {
                try await withProxy({ request, socket in
                    if request.method != "GET" {
                        return try socket.answer(status, ["Location: /other"])
                    }
                    return try socket.answer(
                        200,
                        ["Cache-Control: max-age=60"],
                        "\(request.number)"
                    )
                }) { proxy, origin async throws in
                    _ = try await proxy.request("/a")
                    _ = try await proxy.request("/other")
                    #expect(
                        try await proxy.request("/a", method: method, body: "x").status == status
                    )
                    _ = try await proxy.request("/a")
                    _ = try await proxy.request("/other")
                    #expect(origin.count == (isGone ? 5 : 3), "\(method) \(status) \(origin.heads)")
                }
            }
        }
    }

    @Test func invalidationStaysWithinTheHost() async throws {
        try await withProxy({ request, socket in
            if request.method != "GET" {
                return try socket.answer(
                    200,
                    ["Location: http://other.test/a", "Content-Location: http://other.test/a"]
                )
            }
            return try socket.answer(200, ["Cache-Control: max-age=60"], "x")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/a", ["Host: other.test"])
            _ = try await proxy.request("/b", method: "POST", body: "x")
            _ = try await proxy.request("/a", ["Host: other.test"])
            #expect(origin.count == 2)
        }
    }

    @Test func safeMethodsDoNotInvalidate() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60"],
                "x",
                isHead: request.method == "HEAD"
            )
        }) { proxy, origin async throws in
            _ = try await proxy.request("/a")
            _ = try await proxy.request("/a", method: "OPTIONS")
            _ = try await proxy.request("*", method: "OPTIONS")
            _ = try await proxy.request("/a", method: "HEAD")
            _ = try await proxy.request("/a")
            #expect(origin.heads == ["GET /a", "OPTIONS /a", "OPTIONS *"])
        }
    }

    @Test func variantsAreKeptApart() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: X-Foo, Accept-Language"],
                "\(request["X-Foo"] ?? "-")/\(request["Accept-Language"] ?? "-")"
            )
        }) { proxy, origin async throws in
            let asks = [["X-Foo: 1"], ["X-Foo: 2"], [], ["X-Foo: 1", "Accept-Language: de"]]
            for _ in 0..<2 {
                for fields in asks {
                    let wanted =
                        "\(fields.first?.dropFirst(7) ?? "-")/\(fields.count > 1 ? "de" : "-")"
                    #expect(try await proxy.request("/", fields).text == wanted)
                }
            }
            #expect(origin.count == 4)
        }
    }

    @Test func varyStarIsNeverReused() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["Cache-Control: max-age=60", "Vary: *"], "\(request.number)")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            #expect(try await proxy.request("/").text == "1")
        }
    }

    @Test func partsAreCutFromAStoredWhole() async throws {
        try await withProxy({ _, socket in
            try socket.answer(200, ["Cache-Control: max-age=60", "ETag: \"a\""], "0123456789")
        }) { proxy, origin async throws in
            _ = try await proxy.request("/")
            for (range, status, text) in [
                ("bytes=0-3", 206, "0123"), ("bytes=4-", 206, "456789"), ("bytes=-3", 206, "789"),
                ("bytes=8-99", 206, "89"), ("bytes=-99", 206, "0123456789"), ("bytes=10-", 416, ""),
                ("bytes=-0", 416, ""), ("lines=1-2", 200, "0123456789"),
                ("bytes=3-1", 200, "0123456789"), ("bytes=9223372036854775808-", 416, ""),
                ("bytes=0-18446744073709551616", 206, "0123456789"),
            ] {
                let response = try await proxy.request("/", ["Range: \(range)"])
                #expect(response.status == status, "\(range)")
                if status != 416 { #expect(response.text == text, "\(range)") }
            }
            let first = try await proxy.request("/", ["Range: bytes=0-3"])
            #expect(first["Content-Range"] == "bytes 0-3/10")
            let several = try await proxy.request("/", ["Range: bytes=0-0,5-6"])
            #expect(several.status == 206)
            #expect(several["Content-Type"]?.hasPrefix("multipart/byteranges") == true)
            #expect(
                several.text.contains("\r\n\r\n0\r\n") && several.text.contains("\r\n\r\n56\r\n")
            )
            let right = try await proxy.request("/", ["Range: bytes=0-3", "If-Range: \"a\""])
            #expect(right.status == 206)
            let wrong = try await proxy.request("/", ["Range: bytes=0-3", "If-Range: \"b\""])
            #expect(wrong.status == 200 && wrong.text == "0123456789")
            #expect(origin.count == 1)
        }
    }

    @Test func partIsNeverServedAsTheWhole() async throws {
        try await withProxy({ request, socket in
            if request["Range"] != nil {
                return try socket.answer(
                    206,
                    ["Cache-Control: max-age=60", "ETag: \"a\"", "Content-Range: bytes 0-3/10"],
                    "0123"
                )
            }
            return try socket.answer(
                200,
                ["Cache-Control: max-age=60", "ETag: \"a\""],
                "0123456789"
            )
        }) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["Range: bytes=0-3"]).status == 206)
            let whole = try await proxy.request("/")
            #expect(whole.status == 200 && whole.text == "0123456789")
        }
    }
}
