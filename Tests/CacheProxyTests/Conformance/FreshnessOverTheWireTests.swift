import CacheEngine
import HTTPCaching
import Testing

@testable import CacheProxy

/// RFC 9111 §4, tested from outside: which responses cost an origin request.
@Suite struct FreshnessOverTheWireTests {
    struct Row: Sendable {
        let fields: [String]
        let status: Int
        /// Whether the second request, `afterSeconds` later, is answered without the origin.
        let isReused: Bool
        let afterSeconds: Int64
        init(_ fields: [String], status: Int = 200, after: Int64 = 5, reused: Bool) {
            self.fields = fields
            self.status = status
            isReused = reused
            afterSeconds = after
        }
    }

    /// The second at which the test clock starts.
    static let start: Int64 = 1_700_000_000
    static func date(_ offset: Int64) -> String { HTTPDate.string(start + offset) }

    static let rows: [Row] =
        [
            .init(["Cache-Control: max-age=10"], reused: true),
            .init(["Cache-Control: max-age=10"], after: 11, reused: false),
            .init(["Cache-Control: max-age=4"], reused: false),
            .init(["Cache-Control: max-age=0"], after: 0, reused: false),
            .init(["Cache-Control: max-age=\"10\""], reused: true),
            .init(["Cache-Control: MAX-AGE=10"], reused: true),
            .init(["Cache-Control: max-age=10, max-age=0"], reused: false),
            .init(["Cache-Control: max-age=99999999999"], reused: true),
            .init(["Cache-Control: a=b, max-age=10"], reused: true),
            .init(["Cache-Control: extension=\"max-age=100\", max-age=1"], reused: false),
            .init(["Cache-Control: max-age=1, s-maxage=10"], reused: true),
            .init(["Cache-Control: max-age=10, s-maxage=1"], reused: false),
            .init(["Cache-Control: no-store, max-age=10"], reused: false),
            .init(["Cache-Control: private, max-age=10"], reused: false),
            .init(
                ["Cache-Control: no-store, x=\u{1}", "Last-Modified: \(date(-10_000))"],
                reused: false
            ),
            .init(["Cache-Control: max-age=10", "Set-Cookie: a=\u{7f}"], reused: false),
            .init(["Cache-Control: no-cache, max-age=10"], reused: false),
            .init(["Expires: \(date(10))", "Date: \(date(0))"], reused: true),
            .init(["Expires: \(date(3))", "Date: \(date(0))"], reused: false),
            .init(["Expires: 0", "Date: \(date(0))"], reused: false),
            .init(["Expires: \(date(-10))", "Cache-Control: max-age=10"], reused: true),
            .init(["Expires: \(date(10))", "Cache-Control: max-age=1"], reused: false),
            .init(["Expires: soon"], reused: false),
            .init(["Cache-Control: max-age=10", "Age: 4"], reused: true),
            .init(["Cache-Control: max-age=10", "Age: 6"], reused: false),
            .init(["Cache-Control: max-age=100", "Date: \(date(-98))"], reused: false),
            .init([], reused: false),
            .init(["Last-Modified: \(date(-10_000))"], after: 900, reused: true),
            .init(["Last-Modified: \(date(-10_000))"], after: 1_100, reused: false),
            .init(["CDN-Cache-Control: max-age=10", "Cache-Control: no-store"], reused: true),
            .init(["CDN-Cache-Control: no-store", "Cache-Control: max-age=10"], reused: false),
            .init(["CDN-Cache-Control: max-age=1", "Cache-Control: max-age=10"], reused: false),
            .init(["CDN-Cache-Control: &nonsense", "Cache-Control: max-age=10"], reused: true),
        ]
        + [200, 203, 300, 301, 308, 404, 410, 414].map {
            Row(["Last-Modified: \(date(-10_000))"], status: $0, reused: true)
        }
        + [201, 202, 302, 303, 307, 400, 403, 405, 500, 501, 502, 503, 599, 999].map {
            Row(["Last-Modified: \(date(-10_000))"], status: $0, reused: false)
        }
        + [200, 299, 302, 400, 403, 404, 410, 499, 500, 501, 503, 599].map {
            Row(["Cache-Control: max-age=10"], status: $0, reused: true)
        }

    @Test func everyRowOfFreshness() async throws {
        for (index, row) in Self.rows.enumerated() {
            try await withProxy({ request, socket in
                try socket.answer(row.status, row.fields, "\(request.number)")
            }) { proxy, origin async throws in
                let first = try await proxy.request("/\(index)")
                #expect(first.status == row.status && first.text == "0", "\(row)")
                proxy.advance(row.afterSeconds)
                let second = try await proxy.request("/\(index)")
                let isReused = second.text == "0" && origin.count == 1
                #expect(second.status == row.status, "\(row)")
                #expect(isReused == row.isReused, "\(row) \(second)")
            }
        }
    }

    @Test func ageIsTheOriginsPlusOurs() async throws {
        try await withProxy({ request, socket in
            try socket.answer(200, ["Cache-Control: max-age=100", "Age: 7"], "a")
        }) { proxy, _ async throws in
            #expect(try await proxy.request("/").age == 7)
            proxy.advance(5)
            let hit = try await proxy.request("/")
            #expect(hit.age == 12 && hit.isHit)
        }
    }

    @Test func fieldsOfTheAnswerArriveUnchanged() async throws {
        let fields = [
            "Cache-Control: max-age=9, foo=\"a, b\"", "CDN-Cache-Control: max-age=60",
            "ETag: W/\"x\"",
            "X-Thing: \u{e4}", "Set-Cookie: a=b", "Set-Cookie: c=d", "Server: s/1", "Vary: X-A",
            "Content-Type: a/b", "Content-Language: de", "Warning: 199 - x", "Link: </a>; rel=x",
        ]
        try await withProxy(
            { _, socket in try socket.answer(200, fields, "body") },
            configure: { $0.cookies = .store }
        ) { proxy, origin async throws in
            for _ in 0..<2 {
                let response = try await proxy.request("/")
                for field in fields {
                    let parts = field.split(separator: ":", maxSplits: 1).map(String.init)
                    let value = parts[1].dropFirst()
                    #expect(
                        response.fields.contains {
                            $0.name.lowercased() == parts[0].lowercased() && $0.value == value
                        },
                        "\(field)"
                    )
                }
                #expect(response["Via"] == "1.1 me" && response.text == "body")
            }
            #expect(origin.count == 1)
        }
    }

    @Test func requestDirectivesAreHonoured() async throws {
        try await withProxy({ request, socket in
            try socket.answer(
                200,
                ["Cache-Control: max-age=100", "ETag: \"a\""],
                "\(request.number)"
            )
        }) { proxy, origin async throws in
            #expect(try await proxy.request("/", ["Cache-Control: only-if-cached"]).status == 504)
            #expect(origin.count == 0)
            _ = try await proxy.request("/")
            #expect(try await proxy.request("/", ["Cache-Control: only-if-cached"]).text == "0")
            #expect(try await proxy.request("/", ["Cache-Control: no-cache"]).text == "1")
            proxy.advance(10)
            #expect(try await proxy.request("/", ["Cache-Control: max-age=20"]).text == "1")
            #expect(try await proxy.request("/", ["Cache-Control: max-age=5"]).text == "2")
            #expect(try await proxy.request("/", ["Cache-Control: min-fresh=200"]).text == "3")
            #expect(try await proxy.request("/", ["Pragma: no-cache"]).text == "4")
            #expect(try await proxy.request("/").text == "4")
        }
    }

    @Test func authorizedAnswersAreSharedOnlyWhenMarked() async throws {
        for (directive, isShared) in [
            ("max-age=60", false), ("public, max-age=60", true), ("s-maxage=60", true),
            ("must-revalidate, max-age=60", true),
        ] {
            try await withProxy({ request, socket in
                try socket.answer(200, ["Cache-Control: \(directive)"], "\(request.number)")
            }) { proxy, origin async throws in
                _ = try await proxy.request("/", ["Authorization: Basic eA=="])
                _ = try await proxy.request("/")
                #expect((origin.count == 1) == isShared, "\(directive)")
            }
        }
    }
}
