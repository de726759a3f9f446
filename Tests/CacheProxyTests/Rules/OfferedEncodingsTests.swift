import CacheEngine
import Testing

@testable import CacheProxy

/// The one encoding that the cache and the origin get.
@Suite struct OfferedEncodingsTests {
    static let script: WireOrigin.Script = { request, socket in
        try socket.answer(
            200,
            ["Cache-Control: max-age=60", "Vary: Accept-Encoding"],
            request["Accept-Encoding"] ?? "-"
        )
    }

    /// The fields of a request, and the encoding that it gets from `br,gzip`.
    static let rows: [(sent: [String], named: String)] = [
        ([], "identity"), (["Accept-Encoding: gzip, deflate, br, zstd"], "br"),
        (["Accept-Encoding: gzip"], "gzip"), (["Accept-Encoding: GZIP , deflate"], "gzip"),
        (["Accept-Encoding: br;q=0.5, gzip"], "gzip"), (["Accept-Encoding: deflate"], "identity"),
        (["Accept-Encoding:"], "identity"), (["Accept-Encoding: *"], "br"),
        (["Accept-Encoding: br;q=0, *;q=0.1"], "gzip"), (["Accept-Encoding: gzip;q=0"], "identity"),
        (["Accept-Encoding: gzip", "accept-encoding: br"], "br"),
        (["Accept-Encoding: br", "Connection: Accept-Encoding"], "identity"),
        (["Accept-Encoding: identity, gzip;q=0.1"], "identity"),
        (["Accept-Encoding: gzip;q=0.5, Identity;q=0.6, br;q=0.4"], "identity"),
        (["Accept-Encoding: identity;q=0.5, gzip"], "gzip"),
        (["Accept-Encoding: identity, gzip"], "gzip"),
        (["Accept-Encoding: br;q=0, gzip;q=0.5, *"], "identity"),
        (["Accept-Encoding: identity;q=0, gzip;q=0"], "identity"),
        // A list that is too long to sort asks for nothing.
        (["Accept-Encoding: br" + String(repeating: ", x", count: 32)], "identity"),
    ]

    @Test func eachEncodingIsOneVariant() async throws {
        let options = ["--encodings", "br,gzip"]
        try await OptionTests.withOptions(options, Self.script) { proxy, origin async throws in
            for _ in 0..<2 {
                for row in Self.rows {
                    let response = try await proxy.request("/", row.sent)
                    #expect(response.text == row.named, "\(row.sent)")
                }
            }
            let asked = origin.requests.map { $0["Accept-Encoding"] ?? "-" }
            #expect(asked.sorted() == ["br", "gzip", "identity"])
            _ = try await proxy.request("/", Self.rows[1].sent, method: "POST", body: "x")
            #expect(origin.requests.last?["Accept-Encoding"] == "br")
        }
    }

    /// The origin knows fewer encodings than the list has.
    @Test func noClientGetsAnEncodingThatItDoesNotAccept() async throws {
        let script: WireOrigin.Script = { request, socket in
            let isPacked = request["Accept-Encoding"]?.contains("gzip") == true
            return try socket.answer(
                200,
                ["Cache-Control: max-age=60", "Vary: Accept-Encoding"],
                isPacked ? "gzip" : "identity"
            )
        }
        let options = ["--encodings", "br,gzip"]
        try await OptionTests.withOptions(options, script) { proxy, _ async throws in
            #expect(try await proxy.request("/", ["Accept-Encoding: gzip, br"]).text == "identity")
            #expect(try await proxy.request("/", ["Accept-Encoding: br"]).text == "identity")
            #expect(try await proxy.request("/", ["Accept-Encoding: gzip"]).text == "gzip")
        }
    }

    @Test func withoutTheOptionTheOriginGetsTheFieldAsItCame() async throws {
        try await OptionTests.withOptions([], Self.script) { proxy, origin async throws in
            for value in ["gzip, br", "br;q=0.5, gzip", "gzip"] {
                let response = try await proxy.request("/", ["Accept-Encoding: \(value)"])
                #expect(response.text == value)
            }
            #expect(try await proxy.request("/").text == "-")
        }
    }

    @Test func listIsTakenOverWhenTheConfigurationIsReadAgain() async throws {
        try await OptionTests.withOptions([], Self.script) { proxy, origin async throws in
            let sent = ["Accept-Encoding: zstd, gzip"]
            #expect(try await proxy.request("/", sent).text == "zstd, gzip")
            var new = ExhaustionTests.pointing(at: origin.port)
            new.encodings = try OfferedEncodings(parsing: "gzip")
            #expect(try !proxy.service.reload(new).contains("encodings"))
            #expect(try await proxy.request("/", sent).text == "gzip")
        }
    }
}
